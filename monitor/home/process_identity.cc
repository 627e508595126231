#include "monitor/home/process_identity.h"

#include <linux/kcmp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

namespace gpr::home {

namespace {

std::string link_text(const std::string& path) {
    std::array<char, 64> text{};
    const ssize_t size = readlink(path.c_str(), text.data(), text.size());
    return size > 0 ? std::string(text.data(), static_cast<size_t>(size)) : std::string();
}

// Of a security module, if there is one.
std::string label_of(pid_t pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/attr/current");
    std::string label;
    std::getline(in, label);
    return label;
}

}  // namespace

std::string identity_of(pid_t pid, pid_t tid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/status");
    std::string found, line;
    while (std::getline(in, line)) {
        const bool decides = line.starts_with("Uid:") || line.starts_with("Gid:") ||
                             line.starts_with("Groups:") || line.starts_with("CapEff:") ||
                             line.starts_with("CapPrm:");
        if (decides) found += line + '\n';
    }
    return found;
}

bool may_what_we_may(pid_t pid) {
    const pid_t self = getpid();
    const std::string its = identity_of(pid, pid);
    return !its.empty() && its == identity_of(self, self) && label_of(pid) == label_of(self);
}

bool shares_namespaces(pid_t pid, std::initializer_list<const char*> namespaces) {
    const std::string its = "/proc/" + std::to_string(pid) + "/ns/";
    return std::ranges::all_of(namespaces, [&](const char* name) {
        const std::string ours = link_text(std::string("/proc/self/ns/") + name);
        return !ours.empty() && ours == link_text(its + name);
    });
}

bool share_fs(pid_t one, pid_t other) { return syscall(SYS_kcmp, one, other, KCMP_FS, 0, 0) == 0; }

uint32_t spare_descriptors(pid_t pid) {
    struct stat open {};
    rlimit limit{};
    const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
    if (stat(folder.c_str(), &open) != 0 || prlimit(pid, RLIMIT_NOFILE, nullptr, &limit) != 0) {
        return 0;
    }
    const auto used = static_cast<uint64_t>(open.st_size);
    const bool counted = used != 0;  // since Linux 6.2
    if (!counted || limit.rlim_cur <= used) return 0;
    return static_cast<uint32_t>(std::min<uint64_t>(limit.rlim_cur - used, 1 << 16) / 2);
}

}  // namespace gpr::home
