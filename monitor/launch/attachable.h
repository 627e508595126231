// Why a process cannot be attached, as far as its entries in /proc tell.
#pragma once

#include <sys/types.h>

#include "base/result.h"
#include "monitor/tracee/mapping_flags.h"

namespace gpr {

// Errors name what is in the way, and what to do.
Result<> check_attachable(pid_t pid);
// Of its memory, once it is stopped.
Result<> check_memory(pid_t pid, const std::vector<MappingFlags>& memory);
// Of the timers that it has made (timer_create), once it is stopped.
Result<> check_timers(pid_t pid);
Failure has_cpu_timer(pid_t pid);
// The monitor of the session that it is in. Errors: there is no such process, or no session.
Result<pid_t> monitor_of(pid_t pid);
// What a refusal by ptrace(2) means.
Failure explain_refusal(pid_t pid, const Error& refusal);

}  // namespace gpr
