// The main stack of a process, which home manages for all nodes: monitor/paging/growth.h.
#pragma once

#include <cstdint>

#include "base/address.h"
#include "monitor/home/part.h"

namespace gpr::home {

class MainStack {
public:
    // How much room a stack without a limit has, in bytes.
    static constexpr uint64_t most_room = 256ULL << 20;

    explicit MainStack(Home& home) : home_(home) {}

    // How far down it has been used: pages that are here, or that an acceptor has asked for.
    Address used(HomeProcess& process);
    // Extends or cuts the stack to what its limit and the mapping below allow. This function and
    // the next need the `metadata` lock.
    Task<void> fit(HomeProcess& process);
    // To be called before something is mapped at `wanted`.
    Task<void> make_room(HomeProcess& process, Range wanted);
    // To be called after a call that may have set RLIMIT_STACK.
    Task<void> note_limit(HomeProcess& caller, uint64_t number, const uint64_t* args);
    // Passes the mappings that grow on to a child; records them for an image or child that is being
    // split. shown: what the kernel lists as [stack].
    void inherit(HomeProcess& parent, HomeProcess& child);
    Task<void> read(HomeProcess& process, Range shown);

private:
    Task<void> cut(HomeProcess& process, Range range);

    Home& home_;
};

}  // namespace gpr::home
