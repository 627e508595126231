#include "monitor/home/unopened_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <ctime>
#include <string>

#include "base/fd.h"

namespace gpr::home {

namespace {

// After the last change file systems may still write data to its place on disk, and give back what
// they had reserved, which changes the number of blocks; XFS after five minutes.
constexpr time_t settles_after_s = 600;
constexpr int block_bytes = 512;  // of st_blocks
constexpr size_t most_known = 1 << 15;
// Files that are always in use, such as the C library, are not tried at each look.
constexpr std::chrono::seconds refusal_holds{1};

}  // namespace

void UnopenedFiles::forget() {
    known_.clear();
    refused_.clear();
}

// In memory, holes that have been read through a mapping count as blocks until they are reclaimed.
bool UnopenedFiles::is_settled(const LocalMounts::File& seen, const struct stat& status) {
    if (seen.in_memory) return status.st_blocks * block_bytes >= status.st_size;
    return time(nullptr) - status.st_ctime >= settles_after_s;
}

std::optional<uint32_t> UnopenedFiles::watch(int file, const LocalMounts::File& seen) {
    struct stat status {};
    if (!S_ISREG(seen.mode) || fstat(file, &status) != 0) return std::nullopt;
    if (!is_settled(seen, status)) return std::nullopt;
    // Others need CAP_LEASE for it.
    if (geteuid() != 0 && status.st_uid != geteuid()) return std::nullopt;
    const Inode inode{status.st_dev, status.st_ino};
    const auto known = known_.find(inode);
    if (known != known_.end() && names_.holds(known->second)) return known->second;
    const auto refused = refused_.find(inode);
    const auto now = Clock::now();
    const bool again = refused == refused_.end() || now - refused->second > refusal_holds;
    if (!again || names_.is_full_of_files()) return std::nullopt;
    if (known_.size() >= most_known || refused_.size() >= most_known) forget();
    const auto id = watch_alone(file);
    if (id) {
        known_[inode] = *id;
        refused_.erase(inode);
    } else {
        refused_[inode] = now;
    }
    return id;
}

// The kernel grants the lease if nobody else has the file open, or mapped (fcntl(2), F_SETLEASE),
// and whoever opens it then waits until the lease is given back: after it is watched.
std::optional<uint32_t> UnopenedFiles::watch_alone(int file) {
    const std::string link = "/proc/self/fd/" + std::to_string(file);
    const Fd open(::open(link.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!open || fcntl(open.get(), F_SETLEASE, F_WRLCK) != 0) return std::nullopt;
    const int watch = names_.watch_file(open.get());
    fcntl(open.get(), F_SETLEASE, F_UNLCK);
    if (watch < 0) return std::nullopt;
    return names_.id_of(watch, WatchedNames::itself);
}

}  // namespace gpr::home
