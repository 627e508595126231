// proc(5): what the kernel says of a process or thread.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace gpr {

// The fields behind the name, which may hold anything: state is the first. Empty: it is gone.
// folder: /proc/PID or /proc/PID/task/TID, by ids as this supervisor names them.
std::vector<std::string> stat_fields(const std::string& folder);

// 0: it has none, or is gone.
pid_t parent_of(pid_t pid);

// RLIMIT_* of a process, also where its user is another and prlimit(2) needs CAP_SYS_RESOURCE.
// Nothing: it is gone.
std::optional<rlimit> limit_of(pid_t pid, int resource);

}  // namespace gpr
