#include "monitor/tracee/files_limit.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace gpr {

FilesLimit FilesLimit::of(pid_t pid, rlim_t most) {
    FilesLimit limit;
    if (most != 0 && prlimit(pid, RLIMIT_NOFILE, nullptr, &limit.before_) == 0) limit.most_ = most;
    return limit;
}

Result<> FilesLimit::check(pid_t pid) const {
    if (most_ == 0) return {};
    std::error_code gone;
    const std::string folder = fmt::format("/proc/{}/fd", pid);
    for (const auto& entry : std::filesystem::directory_iterator(folder, gone)) {
        const std::string number = entry.path().filename();
        if (static_cast<rlim_t>(std::atol(number.c_str())) < most_) continue;
        return fail(fmt::format(
            "process {} has descriptor {}, and numbers from {} on are kept for files of the "
            "acceptor; close it, or begin with a higher limit of open files (ulimit -n)",
            pid, number, most_));
    }
    return {};
}

void FilesLimit::lower(pid_t pid, bool hard) const {
    rlimit less = before_;
    less.rlim_cur = std::min(less.rlim_cur, most_);
    if (hard) less.rlim_max = std::min(less.rlim_max, most_);
    if (most_ != 0) prlimit(pid, RLIMIT_NOFILE, &less, nullptr);
}

void FilesLimit::lower_again(pid_t pid) {
    rlimit now{};
    if (most_ == 0 || prlimit(pid, RLIMIT_NOFILE, nullptr, &now) != 0) return;
    if (now.rlim_cur <= most_ && now.rlim_max <= most_) return;
    *this = of(pid, most_);
    lower(pid, true);
}

void FilesLimit::restore(pid_t pid) const {
    rlimit now{};
    if (most_ == 0 || prlimit(pid, RLIMIT_NOFILE, nullptr, &now) != 0) return;
    rlimit then = restored(now);
    if (prlimit(pid, RLIMIT_NOFILE, &then, nullptr) == 0) return;
    then.rlim_max = now.rlim_max;
    then.rlim_cur = std::min(then.rlim_cur, then.rlim_max);
    prlimit(pid, RLIMIT_NOFILE, &then, nullptr);
}

rlimit FilesLimit::restored(rlimit now) const {
    if (before_.rlim_cur > most_ && now.rlim_cur == most_) now.rlim_cur = before_.rlim_cur;
    if (before_.rlim_max > most_ && now.rlim_max == most_) now.rlim_max = before_.rlim_max;
    now.rlim_max = std::max(now.rlim_cur, now.rlim_max);
    return now;
}

}  // namespace gpr
