// What calls of program code at home that change mappings have to pass first: seals, and room for
// news of them on their way to the acceptor. docs/decisions/0040-changes-have-a-window.md
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

    // True: the call has been answered, or is held until it may be made.
    bool holds(HomeThread& thread, const Notification& n);
    // mseal, of whoever has this memory.
    Task<int64_t> seal(pid_t pid, std::array<uint64_t, 3> args);
    // What a child has of its parent's memory, unless it shares that, and what bounds it.
    void inherit(const HomeThread& parent, HomeProcess& child, bool shares);
    // Somebody is about to write there, whatever its protection: as if the program had made its
    // text writable for a moment.
    Task<void> open_text(pid_t pid, Range range);
    // That acceptor has applied what it was told before the mark.
    void applied(pid_t pid, NodeId from, uint32_t mark);
    // An acceptor's own mark: what it told before is applied here, and is to be at the others.
    void answer_mark(pid_t pid, NodeId from, uint32_t mark);

private:
    Task<void> seal_here(pid_t pid, Notification n);
    Task<void> wait(std::shared_ptr<ChangeWindow> window, Notification n);

    // A mark of one acceptor that the others have been sent.
    struct RelayedMark {
        NodeId of = directory_node;
        uint32_t mark = 0;
        unsigned missing = 0;  // answers
    };

    Home& home_;
    std::map<uint32_t, RelayedMark> relayed_;  // by the number that it has for the others
    uint32_t relays_ = 0;
};

}  // namespace gpr::home
