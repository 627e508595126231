#include "monitor/home/file_watchers.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace gpr::home {

namespace fs = std::filesystem;

namespace {

constexpr int most_descriptors = 1024;  // more would take too long

// proc_pid_fdinfo(5): "lock:  1: LEASE  ACTIVE    WRITE 1234 08:01:5678 0 EOF".
bool has_lease(const fs::path& info) {
    std::ifstream in(info);
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("lock:") && line.find(" LEASE ") != std::string::npos) return true;
    }
    return false;
}

FileWatchers::Verdict look(pid_t pid) {
    using Verdict = FileWatchers::Verdict;
    std::error_code error;
    int seen = 0;
    const fs::path process = "/proc/" + std::to_string(pid);
    fs::directory_iterator at(process / "fd", error), end;
    if (error) return Verdict::unknown;
    for (; !error && at != end; at.increment(error)) {
        if (++seen > most_descriptors) return Verdict::unknown;
        std::error_code closed;
        const std::string target = fs::read_symlink(at->path(), closed).string();
        const bool watches =
            target == "anon_inode:inotify" || target == "anon_inode:[fanotify]" ||
            (target.starts_with('/') && has_lease(process / "fdinfo" / at->path().filename()));
        if (watches) return Verdict::some;
    }
    return error ? Verdict::unknown : Verdict::none;
}

}  // namespace

FileWatchers::Verdict FileWatchers::of(pid_t pid) {
    const auto known = known_.find(pid);
    if (known != known_.end()) return known->second;
    return known_[pid] = look(pid);
}

}  // namespace gpr::home
