// Inotify watches of open files and directories. One inode has one watch, however often it is
// open.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"

namespace gpr::home {

class OpenFileWatches {
public:
    OpenFileWatches();

    // -1: there can be no inotify.
    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] bool empty() const { return uses_.empty(); }
    // Each returns a watch to be removed as often as it was added; -1: there can be none.
    int add_file(int file);
    int add_directory(int directory);
    // Of the directory above it, which alone is told that a directory that is open is removed.
    int add_above(int directory);
    void remove(int watch);
    struct Change {
        int watch = -1;        // -1: perhaps all, as the queue was full
        bool removes = false;  // a directory in it
    };
    std::vector<Change> take_changes();

private:
    int add(const std::string& path, uint32_t changes);

    Fd fd_;
    std::map<int, int> uses_;
};

}  // namespace gpr::home
