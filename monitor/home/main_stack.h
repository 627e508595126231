// The main stack of a process, as the session at home looks after it on both nodes: growth.h.
#pragma once

#include "monitor/home/process.h"

namespace gpr {

class HomeSession;

struct MainStack {
    // How far down it was used: what is here, or was asked for at the acceptor.
    static Address used(HomeSession& session, HomeProcess& process);
    // As far as its limit and what lies below allow. Under the lock of the metadata, as is the
    // next.
    static Task<void> fit(HomeSession& session, HomeProcess& process);
    // Before something is mapped there.
    static Task<void> make_room(HomeSession& session, HomeProcess& process, Range wanted);
    // After a call that may have set RLIMIT_STACK.
    static Task<void> note_limit(HomeSession& session, HomeProcess& caller, uint64_t number,
                                 const uint64_t* args);
    // What grows in a child, and in an image or child that is being split. shown: what the kernel
    // calls the stack.
    static void inherit(HomeSession& session, HomeProcess& parent, HomeProcess& child);
    static Task<void> read(HomeSession& session, HomeProcess& process, Range shown);

private:
    static Task<void> cut(HomeSession& session, HomeProcess& process, Range range);
};

}  // namespace gpr
