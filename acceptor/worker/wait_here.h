// The part of a wait for descriptors of both nodes that this one has.
#pragma once

#include <poll.h>

#include <cstdint>
#include <vector>

#include "base/task.h"
#include "monitor/tracee/notifier.h"

namespace gpr::worker {

// The part of a wait that is ours. Its result and that of home are one result for the program.
class WaitHere {
public:
    virtual ~WaitHere() = default;
    // What becomes readable, or has these events, when there is something to look at.
    virtual std::vector<pollfd> watched() const = 0;
    // Puts what is ready now into the program's memory, behind `before` entries of home, and says
    // how many that is, or an error.
    virtual Task<int64_t> collect(int64_t before) = 0;
    // The same call without waiting, for what is left behind as many entries of ours.
    virtual Notification without_wait(int64_t ours) const = 0;
    // Puts what was collected last there again, if home's part has been written over it.
    virtual Task<bool> put_again() { co_return true; }
};

}  // namespace gpr::worker
