// Goes through the pages of a process that its directory knows: those that a node other than that
// of their birth has ever asked for.
#pragma once

#include <sys/types.h>

#include <functional>

#include "base/address.h"
#include "base/task.h"
#include "mm/page_directory.h"

namespace gpr {

namespace home {
struct Home;
}  // namespace home

struct KnownPage {
    Range mapping;
    Address at;
    PageHolders holders;
    // Changes of owner, or of who else reads it, since its memory was made.
    [[nodiscard]] uint64_t moves() const { return version_of(holders.epoch); }
};

// In the order of addresses. Lets the loop run in between: what comes later may be newer.
Task<void> each_known_page(home::Home& home, pid_t pid,
                           std::function<void(const KnownPage& page)> look);

}  // namespace gpr
