// Reasons why a process cannot be attached, as far as /proc shows them.
#pragma once

#include <sys/types.h>

#include "base/result.h"
#include "monitor/tracee/mapping_flags.h"

namespace gpr {

// Errors name the obstacle and what to do about it.
Result<> check_attachable(pid_t pid);
// Checks the memory of a stopped process.
Result<> check_memory(pid_t pid, const std::vector<MappingFlags>& memory);
Failure has_cpu_timer(pid_t pid);
// The monitor of the session that the process is in. Fails if there is no such process or no
// session.
Result<pid_t> monitor_of(pid_t pid);
// Explains a refusal by ptrace(2).
Failure explain_refusal(pid_t pid, const Error& refusal);

}  // namespace gpr
