// Calls of program code at home that change mappings pass this first: it enforces seals, and the
// limit on changes that acceptors have yet to apply. docs/decisions/0040-changes-have-a-window.md
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>

#include "base/address.h"
#include "mm/page_protocol.h"
#include "monitor/home/part.h"

namespace gpr {
class ChangeWindow;
}  // namespace gpr

namespace gpr::home {

class MemoryGate {
public:
    explicit MemoryGate(Home& home) : home_(home) {}

    // True if the call has been answered, or is held until it may be made.
    bool holds(HomeThread& thread, const Notification& n);
    // mseal, for the process that owns this memory.
    Task<int64_t> seal(pid_t pid, std::array<uint64_t, 3> args);
    // Copies to a child what it inherits of its parent's memory (unless it shares that) and its
    // limits.
    void inherit(const HomeThread& parent, HomeProcess& child, bool shares);
    // A tracer is about to write there, whatever the protection: treats the code as if the program
    // had made it writable for a moment.
    Task<void> open_text(pid_t pid, Range range);
    // An acceptor has applied everything that it was told before the mark.
    void applied(pid_t pid, NodeId from, uint32_t mark);
    // An acceptor's own mark: what it told us before is applied here; answers once the other
    // acceptors have applied it, too.
    void answer_mark(pid_t pid, NodeId from, uint32_t mark);

private:
    Task<void> seal_here(pid_t pid, Notification n);
    Task<void> wait(std::shared_ptr<ChangeWindow> window, Notification n);

    // An acceptor's mark that has been relayed to the others.
    struct RelayedMark {
        NodeId of = directory_node;
        uint32_t mark = 0;
        unsigned missing = 0;  // answers that have not come yet
    };

    Home& home_;
    std::map<uint32_t, RelayedMark> relayed_;  // by the number used for the others
    uint32_t relays_ = 0;
};

}  // namespace gpr::home
