// What calls of program code at home that change mappings have to pass first: seals, and room for
// news of them on their way to the acceptor. docs/decisions/0040-changes-have-a-window.md
#pragma once

#include "monitor/home/session.h"

namespace gpr {

struct MemoryGate {
    // True: the call has been answered, or is held until it may be made.
    static bool holds(HomeSession& session, HomeThread& thread, const Notification& n);
    // mseal, of whoever has this memory.
    static Task<int64_t> seal(HomeSession& session, pid_t pid, std::array<uint64_t, 3> args);
    // What a child has of its parent's memory, unless it shares that, and what bounds it.
    static void inherit(HomeSession& session, const HomeThread& parent, HomeProcess& child,
                        bool shares);
    // Somebody is about to write there, whatever its protection: as if the program had made its
    // text writable for a moment.
    static Task<void> open_text(HomeSession& session, pid_t pid, Range range);
    // The acceptor has applied what it was told before the mark.
    static void applied(HomeSession& session, pid_t pid, uint32_t mark);

private:
    static Task<void> seal_here(HomeSession& session, pid_t pid, Notification n);
    static Task<void> wait(HomeSession& session, std::shared_ptr<ChangeWindow> window,
                           Notification n);
};

}  // namespace gpr
