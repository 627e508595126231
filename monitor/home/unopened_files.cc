#include "monitor/home/unopened_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <ctime>
#include <string>

#include "base/fd.h"

namespace gpr::home {

namespace {

// After the last change file systems may still write data to its place on disk, and give back what
// they had reserved, which changes the number of blocks; XFS after five minutes.
constexpr time_t settles_after_s = 600;
constexpr size_t most_known = 1 << 15;

// Whether nobody else has the file open, or mapped; fcntl(2), F_SETLEASE.
bool is_ours_alone(int file) {
    if (fcntl(file, F_SETLEASE, F_WRLCK) != 0) return false;
    fcntl(file, F_SETLEASE, F_UNLCK);
    return true;
}

}  // namespace

std::optional<uint32_t> UnopenedFiles::watch(int file, const LocalMounts::File& seen) {
    struct stat status {};
    if (!S_ISREG(seen.mode) || fstat(file, &status) != 0) return std::nullopt;
    if (!seen.in_memory && time(nullptr) - status.st_ctime < settles_after_s) return std::nullopt;
    const Inode inode{status.st_dev, status.st_ino};
    const auto known = known_.find(inode);
    if (known != known_.end() && names_.holds(known->second)) return known->second;
    if (names_.is_full()) return std::nullopt;
    if (known_.size() >= most_known)
        std::erase_if(known_, [&](const auto& one) { return !names_.holds(one.second); });
    // A second open would be the end of a watch that is there already.
    const std::string link = "/proc/self/fd/" + std::to_string(file);
    const Fd open(::open(link.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!open) return std::nullopt;
    const int watch = names_.watch_file(open.get());
    if (watch < 0) return std::nullopt;
    if (!is_ours_alone(open.get())) {
        names_.unwatch(watch);
        return std::nullopt;
    }
    const uint32_t id = names_.id_of(watch, WatchedNames::itself);
    known_[inode] = id;
    return id;
}

}  // namespace gpr::home
