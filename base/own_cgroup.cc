#include "base/own_cgroup.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

namespace gpr {
namespace {

// A line of mountinfo: "36 35 0:31 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw"
Result<std::string> cgroup2_mount_point() {
    std::ifstream file("/proc/self/mountinfo");
    for (std::string line; std::getline(file, line);) {
        const auto separator = line.find(" - ");
        if (separator == std::string::npos) continue;
        if (line.compare(separator + 3, 8, "cgroup2 ") != 0) continue;
        std::istringstream in(line);
        std::string field;
        for (int i = 0; i < 5; ++i) in >> field;
        return field;
    }
    return fail("no cgroup v2 is mounted");
}

}  // namespace

Result<OwnCgroup> own_cgroup() {
    GPR_TRY(auto mount_point, cgroup2_mount_point());
    std::ifstream file("/proc/self/cgroup");
    for (std::string line; std::getline(file, line);) {
        if (line.compare(0, 3, "0::") != 0) continue;
        auto path = mount_point + line.substr(3);
        while (path.size() > 1 && path.back() == '/') path.pop_back();
        return OwnCgroup{mount_point, path};
    }
    return fail("this process is in no cgroup v2");
}

std::vector<std::string> controllers_of(const std::string& path) {
    std::ifstream file(path + "/cgroup.controllers");
    return {std::istream_iterator<std::string>(file), {}};
}

int probe_cgroup_controller(const std::string& controller) {
    const auto own = own_cgroup();
    if (!own) return ENOENT;
    const auto there = controllers_of(own->path);
    if (std::find(there.begin(), there.end(), controller) == there.end()) return EOPNOTSUPP;
    return access(own->path.c_str(), W_OK) == 0 ? 0 : errno;
}

}  // namespace gpr
