// The main stack of a process, as the session at home looks after it on both nodes: growth.h.
#pragma once

#include <cstdint>

#include "base/address.h"
#include "monitor/home/part.h"

namespace gpr::home {

class MainStack {
public:
    explicit MainStack(Home& home) : home_(home) {}

    // How far down it was used: what is here, or was asked for at the acceptor.
    Address used(HomeProcess& process);
    // As far as its limit and what lies below allow. Under the lock of the metadata, as is the
    // next.
    Task<void> fit(HomeProcess& process);
    // Before something is mapped there.
    Task<void> make_room(HomeProcess& process, Range wanted);
    // After a call that may have set RLIMIT_STACK.
    Task<void> note_limit(HomeProcess& caller, uint64_t number, const uint64_t* args);
    // What grows in a child, and in an image or child that is being split. shown: what the kernel
    // calls the stack.
    void inherit(HomeProcess& parent, HomeProcess& child);
    Task<void> read(HomeProcess& process, Range shown);

private:
    Task<void> cut(HomeProcess& process, Range range);

    Home& home_;
};

}  // namespace gpr::home
