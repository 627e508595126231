// Regular files of which nobody can change the status without an event of inotify. Whoever has a
// file open can: a store to a shared mapping changes its times, and so may reading it. So these are
// the files that nobody has open, and each is watched for being opened.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "monitor/home/local_mounts.h"
#include "monitor/home/watched_names.h"

namespace gpr::home {

class UnopenedFiles {
public:
    explicit UnopenedFiles(WatchedNames& names) : names_(names) {}

    // An id that holds until somebody opens the file, or changes it or its place. file: open with
    // O_PATH, `seen` on a local mount. nullopt: somebody has it open, it may still change by
    // itself, or we may not look. It is opened for a moment, which watchers of the file see,
    // and which begins to break a lease on it.
    std::optional<uint32_t> watch(int file, const LocalMounts::File& seen);
    void forget();

private:
    using Clock = std::chrono::steady_clock;
    using Inode = std::pair<uint64_t, uint64_t>;  // device, number

    [[nodiscard]] static bool is_settled(const LocalMounts::File& seen, const struct stat& status);
    std::optional<uint32_t> watch_alone(int file);

    WatchedNames& names_;
    std::map<Inode, uint32_t> known_;
    std::map<Inode, Clock::time_point> refused_;
};

}  // namespace gpr::home
