// What calls of program code at home that change mappings have to pass first: seals, and room for
// news of them on their way to the acceptor. docs/decisions/0040-changes-have-a-window.md
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>

#include "base/address.h"
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
    // The acceptor has applied what it was told before the mark.
    void applied(pid_t pid, uint32_t mark);

private:
    Task<void> seal_here(pid_t pid, Notification n);
    Task<void> wait(std::shared_ptr<ChangeWindow> window, Notification n);

    Home& home_;
};

}  // namespace gpr::home
