// proc(5): what the kernel says of a process or thread.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace gpr {

// The fields of the stat file that follow the name (which may contain anything), beginning with the
// state. Empty if the process is gone. folder: /proc/PID or /proc/PID/task/TID, with ids as this
// supervisor sees them.
std::vector<std::string> stat_fields(const std::string& folder);

// 0 if it has none or is gone.
pid_t parent_of(pid_t pid);

// RLIMIT_* of a process, even one of another user, where prlimit(2) would need CAP_SYS_RESOURCE.
// nullopt if it is gone.
std::optional<rlimit> limit_of(pid_t pid, int resource);

}  // namespace gpr
