// Regular files of which nobody can change the status without an event of inotify. Whoever has a
// file open can: a store to a shared mapping changes its times, and so may reading it. So these are
// the files that nobody has open, and each is watched for being opened.
#pragma once

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
    // itself, or we may not look. It is opened for a moment, which watchers of the file see.
    std::optional<uint32_t> watch(int file, const LocalMounts::File& seen);
    void forget() { known_.clear(); }

private:
    using Inode = std::pair<uint64_t, uint64_t>;  // device, number

    WatchedNames& names_;
    std::map<Inode, uint32_t> known_;
};

}  // namespace gpr::home
