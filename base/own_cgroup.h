// This process's place among cgroups v2, and what can be limited there.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace gpr {

struct OwnCgroup {
    std::string mount_point;  // of the cgroup v2 file system
    std::string path;         // of this process's cgroup: a directory in that file system
};

// Fails without cgroup v2, which is an ordinary outcome.
Result<OwnCgroup> own_cgroup();

// Returns what the cgroup's parent lets it limit: "cpu", "memory", "pids", ...
std::vector<std::string> controllers_of(const std::string& path);

// Returns 0 if a child of this process's cgroup could be limited with `controller`, else an errno.
// ENOENT: there is no cgroup v2. EOPNOTSUPP: the controller is not available there. EACCES: the
// cgroup is not ours to change.
int probe_cgroup_controller(const std::string& controller);

}  // namespace gpr
