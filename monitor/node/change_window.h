// Limits how many changes of one process's mappings this node has sent to another that are not yet
// applied there. A program may change mappings faster than the other node can follow; without a
// limit the backlog there, and so the latency of everything behind it, would grow for ever.
//
// A call that changes mappings waits for room before it takes any lock, so that nobody who holds a
// lock waits for the other node. A mark follows every few calls; the other node sends it back when
// it has applied everything before it.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/task.h"
#include "monitor/node/address_change.h"

namespace gpr {

class ChangeWindow {
public:
    static constexpr uint32_t calls_per_mark = 32;
    static constexpr uint32_t most_marks = 4;  // sent and not returned

    explicit ChangeWindow(Scheduler& scheduler) : moved_(scheduler) {}

    // If false, wait for moved() and ask again.
    [[nodiscard]] bool has_room() const { return marked_ - applied_ < most_marks; }
    // To be called before a call that changes mappings of the process. False if there is no room.
    bool take(Link& link, pid_t pid) {
        if (!has_room()) return false;
        if (++calls_ < calls_per_mark) return true;
        calls_ = 0;
        tell_mark(link, pid, ++marked_);
        return true;
    }
    // The process is gone: wakes all who wait for room.
    void close() { applied(marked_); }
    [[nodiscard]] auto moved() { return moved_.wait(); }
    void applied(uint32_t mark) {
        // Ignore a mark that was never sent.
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
