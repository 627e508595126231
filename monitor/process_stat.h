// proc(5), stat: what the kernel says of a process or thread in one line.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace gpr {

// The fields behind the name, which may hold anything: state is the first. Empty: it is gone.
// folder: /proc/PID or /proc/PID/task/TID, by ids as this supervisor names them.
std::vector<std::string> stat_fields(const std::string& folder);

// 0: it has none, or is gone.
pid_t parent_of(pid_t pid);

}  // namespace gpr
