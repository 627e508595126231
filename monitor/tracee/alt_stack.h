// The alternate signal stack belongs to the kernel thread. A crossing carries it when it may have
// changed: after sigaltstack, after rt_sigreturn, and when a handler begins under SS_AUTODISARM.
#pragma once

#include "monitor/tracee/stub_thread.h"
#include "transport/gpr.capnp.h"

namespace gpr {

// The thread must be in its stub. The stub does not run on the alternate stack, so the kernel
// neither reports SS_ONSTACK nor refuses a change.
Task<void> put_alt_stack(StubThread& stub, wire::Crossing::Builder crossing);
Task<void> take_alt_stack(StubThread& stub, wire::Crossing::Reader crossing);

}  // namespace gpr
