// MADV_GUARD_INSTALL and _REMOVE (Linux 6.13): marks in the kernel's page tables, which do not
// travel: both nodes make them. Where either kernel has none, or cannot tell where they are (6.15),
// the advice is refused as older kernels do, upon which programs use mprotect.
#pragma once

#include <cstdint>

#include "monitor/home/part.h"

namespace gpr::home {

class GuardPages {
public:
    explicit GuardPages(Home& home) : home_(home) {}

    // Under the lock of the metadata: the call n, made by stub.
    Task<int64_t> change(HomeProcess& process, StubThread& stub, Notification n);
    // Of a child that the acceptor has just been told of.
    void tell_all(HomeProcess& process);

private:
    Home& home_;
};

}  // namespace gpr::home
