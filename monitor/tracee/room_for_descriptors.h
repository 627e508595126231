// Descriptor numbers of the program that gpr uses for a short time.
#pragma once

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <algorithm>
#include <string>

namespace gpr {

// The lowest free descriptor number but 0, which would be an order as the result of a park
// (StubThread::take_fd).
inline int free_descriptor(pid_t pid) {
    for (int number = 1;; number++) {
        std::string link = fmt::format("/proc/{}/fd/{}", pid, number);
        struct stat st {};
        if (lstat(link.c_str(), &st) != 0) return number;
    }
}

// Raises the limit of open files for a while: preparing a process needs a few descriptors in it,
// and the program may have used all it may have.
class RoomForDescriptors {
public:
    explicit RoomForDescriptors(pid_t pid) : pid_(pid) {
        if (prlimit(pid, RLIMIT_NOFILE, nullptr, &before_) != 0) return;
        rlimit more = before_;
        more.rlim_cur = before_.rlim_cur + needed;
        more.rlim_max = std::max(before_.rlim_max, more.rlim_cur);
        changed_ = prlimit(pid, RLIMIT_NOFILE, &more, nullptr) == 0;
        if (changed_ || before_.rlim_cur == before_.rlim_max) return;
        // Without the privilege to raise the hard limit.
        more.rlim_cur = more.rlim_max = before_.rlim_max;
        changed_ = prlimit(pid, RLIMIT_NOFILE, &more, nullptr) == 0;
    }
    ~RoomForDescriptors() {
        if (changed_) prlimit(pid_, RLIMIT_NOFILE, &before_, nullptr);
    }
    RoomForDescriptors(const RoomForDescriptors&) = delete;
    RoomForDescriptors& operator=(const RoomForDescriptors&) = delete;

private:
    static constexpr rlim_t needed = 8;
    pid_t pid_;
    rlimit before_{};
    bool changed_ = false;
};

}  // namespace gpr
