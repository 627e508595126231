// The pages of mappings that have moved, counted in cells: as many for each mapping as a picture of
// it shows.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

#include "base/address.h"
#include "base/task.h"

namespace gpr {

namespace home {
struct Home;
}  // namespace home

// A mapping has as many cells as pages, but no more than `most`; cell i of n begins with page
// i*pages/n, rounded up.
[[nodiscard]] uint64_t cell_count(uint64_t pages, uint64_t most);
[[nodiscard]] uint64_t cell_of(uint64_t page, uint64_t pages, uint64_t cells);

struct PageCell {
    uint64_t moves = 0;          // of all its pages, since their memory was made
    uint64_t shared = 0;         // pages that several nodes have, to read
    std::vector<uint64_t> only;  // by node: pages that it alone has
};

// By where a mapping begins, and by cell. What is not listed has never moved.
using PageCells = std::map<Address, std::map<uint64_t, PageCell>>;
Task<PageCells> page_cells(home::Home& home, pid_t pid, uint64_t most);

}  // namespace gpr
