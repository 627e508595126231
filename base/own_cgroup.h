// Where this process is among cgroups v2, and what can be limited there.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace gpr {

struct OwnCgroup {
    std::string mount_point;  // of the cgroup v2 file system
    std::string path;         // of this process's cgroup, a directory in it
};

// Fails where there is no cgroup v2: an ordinary outcome.
Result<OwnCgroup> own_cgroup();

// What the cgroup's parent lets it limit: "cpu", "memory", "pids", ...
std::vector<std::string> controllers_of(const std::string& path);

// 0 if children of this process's cgroup could be limited so; else the errno that says why not:
// ENOENT there is no cgroup v2, EOPNOTSUPP it has no such controller there, EACCES it is not ours.
int probe_cgroup_controller(const std::string& controller);

}  // namespace gpr
