// Which pages of a process move between nodes, according to the directory.
#pragma once

#include <sys/types.h>

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/address.h"
#include "base/task.h"

namespace gpr {

namespace home {
struct Home;
}  // namespace home

struct MovedPage {
    Address at;
    uint64_t moves = 0;  // changes of owner since its memory was made
    uint16_t nodes = 0;  // the nodes that have it, one bit each
    bool exclusive = false;
    bool operator>(const MovedPage& other) const { return moves > other.moves; }
};

// The pages that moved most, and at least twice: up to `most`. Lets the loop run in between.
Task<std::vector<MovedPage>> moved_pages(home::Home& home, pid_t pid, size_t most);

}  // namespace gpr
