// Changes of one process's mappings that this node has told the other one of, and that are not
// applied there yet. A program may change mappings faster than the other node can: without a bound
// what waits there grows for ever, and so does the time until anything else gets its turn.
//
// A call that changes mappings waits for room before it takes any lock, so that whoever holds one
// is never waited for in a circle. Every few calls a mark follows the changes, which the other node
// sends back when it has applied all before it.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/task.h"
#include "monitor/node/address_change.h"

namespace gpr {

class ChangeWindow {
public:
    static constexpr uint32_t calls_per_mark = 32;
    static constexpr uint32_t most_marks = 4;  // under way

    explicit ChangeWindow(Scheduler& scheduler) : moved_(scheduler) {}

    // Else ask again when something has moved().
    [[nodiscard]] bool has_room() const { return marked_ - applied_ < most_marks; }
    // Before a call that changes mappings of the process. False: there is no room.
    bool take(Link& link, pid_t pid) {
        if (!has_room()) return false;
        if (++calls_ < calls_per_mark) return true;
        calls_ = 0;
        tell_mark(link, pid, ++marked_);
        return true;
    }
    // The process is gone, and whoever waits finds that out.
    void close() { applied(marked_); }
    [[nodiscard]] auto moved() { return moved_.wait(); }
    void applied(uint32_t mark) {
        // A peer that answers what nobody asked opens nothing.
        if (mark - applied_ > marked_ - applied_) return;
        applied_ = mark;
        moved_.notify_all();
    }

private:
    Signal moved_;
    uint32_t calls_ = 0;  // since the last mark
    uint32_t marked_ = 0, applied_ = 0;
};

}  // namespace gpr
