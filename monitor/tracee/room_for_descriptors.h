// Descriptors of the program that are ours for a moment: a number, and a limit of open files that
// is wider for a while.
#pragma once

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <algorithm>
#include <string>

namespace gpr {

// The lowest number that it does not use.
inline int free_descriptor(pid_t pid) {
    for (int number = 0;; number++) {
        std::string link = fmt::format("/proc/{}/fd/{}", pid, number);
        struct stat st {};
        if (lstat(link.c_str(), &st) != 0) return number;
    }
}

// Preparation needs descriptors of the program for a moment, and it may have used all it has.
class RoomForDescriptors {
public:
    explicit RoomForDescriptors(pid_t pid) : pid_(pid) {
        if (prlimit(pid, RLIMIT_NOFILE, nullptr, &before_) != 0) return;
        rlimit more = before_;
        more.rlim_cur = before_.rlim_cur + needed;
        more.rlim_max = std::max(before_.rlim_max, more.rlim_cur);
        changed_ = prlimit(pid, RLIMIT_NOFILE, &more, nullptr) == 0;
        if (changed_ || before_.rlim_cur == before_.rlim_max) return;
        more.rlim_cur = more.rlim_max = before_.rlim_max;  // without the right to raise that one
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
