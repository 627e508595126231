// This node's part of a wait for descriptors of both nodes.
#pragma once

#include <poll.h>

#include <cstdint>
#include <vector>

#include "base/task.h"
#include "monitor/tracee/notifier.h"
#include "transport/loop.h"

namespace gpr::worker {

// The program gets one result for both parts.
class WaitHere {
public:
    virtual ~WaitHere() = default;
    // Descriptors and events that show that put_ready() has something to write.
    virtual std::vector<pollfd> watched() const = 0;
    // Writes what is ready now into the program's memory, after `before` entries of home's. Returns
    // the number of entries, or an error.
    virtual Task<int64_t> put_ready(int64_t before) = 0;
    // The same call without waiting, for home's part, after `ours` entries of ours.
    virtual Notification without_wait(int64_t ours) const = 0;
    // Writes what was put last once more, in case home's part has overwritten it.
    virtual Task<bool> put_again() { co_return true; }
    // Closes its copies of the program's descriptors, as the process ends: drivers expect that the
    // last one is the process's own. Nothing is ready any more.
    virtual void let_go() { watches.clear(); }

    std::vector<Watch> watches;  // of watched(), while it waits
};

}  // namespace gpr::worker
