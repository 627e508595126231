// MADV_GUARD_INSTALL and _REMOVE (Linux 6.13): marks in the kernel's page tables, which do not
// travel: both nodes make them. Where either kernel has none, or cannot tell where they are (6.15),
// the advice is refused as older kernels do, upon which programs use mprotect.
#pragma once

#include "monitor/home/process.h"
#include "monitor/node/guard_advice.h"
#include "monitor/tracee/notifier.h"

namespace gpr {

class HomeSession;

struct GuardPages {
    // Under the lock of the metadata: the call n, made by stub.
    static Task<int64_t> change(HomeSession& session, HomeProcess& process, StubThread& stub,
                                Notification n);
    // Of a child that the acceptor has just been told of.
    static void tell_all(HomeSession& session, HomeProcess& process);
};

}  // namespace gpr
