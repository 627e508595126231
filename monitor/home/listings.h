// What programs have found in directories. Who lists a directory often asks for the status of what
// is in it next, so home sends several with the first answers. Pure: knows no process and no file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "monitor/home/path_walks.h"

namespace gpr::home {

class Listings {
public:
    using Place = PathWalks::Place;

    // entries: struct linux_dirent64, as many as fit; getdents64(2). Those of regular files count.
    void note(const Place& directory, std::span<const std::byte> entries);
    // A status in a directory is asked for. reader: whoever is told; nobody else has its number.
    // Returns the names of files whose status should go with it: none for the first name, then all
    // others of the directory by and by, each once.
    std::vector<std::string> next(const Place& directory, uint32_t reader,
                                  const std::string& asked);
    // No more is told to whoever it is.
    void forget(uint32_t reader);
    void forget_all();

private:
    struct Listing {
        std::set<std::string> names;
        bool too_long = false;
    };
    struct Progress {
        std::string first;  // asked for
        std::string last;   // told
        size_t left = 0;
        size_t at_once = 0;  // so many next; 0: nothing has been told
    };

    std::map<Place, Listing> listings_;
    std::map<std::pair<uint32_t, Place>, Progress> progress_;
    size_t names_ = 0;
};

}  // namespace gpr::home
