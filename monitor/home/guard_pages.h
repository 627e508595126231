// MADV_GUARD_INSTALL and _REMOVE (Linux 6.13): marks in the kernel's page tables, which cannot move
// with pages, so every node sets them. If a node's kernel has none, or cannot report them (before
// 6.15), the advice is refused as by older kernels, and programs use mprotect instead.
#pragma once

#include <cstdint>

#include "monitor/home/part.h"

namespace gpr::home {

class GuardPages {
public:
    explicit GuardPages(Home& home) : home_(home) {}

    // The caller must hold the `metadata` lock. Makes the call n in `stub`.
    Task<int64_t> change(HomeProcess& process, StubThread& stub, Notification n);
    // For a child that the acceptors have just been told of.
    void tell_all(HomeProcess& process);

private:
    Home& home_;
};

}  // namespace gpr::home
