// The alternate signal stack belongs to the kernel thread. It crosses when it may have changed: by
// sigaltstack, by rt_sigreturn, and by a handler that begins under SS_AUTODISARM.
#pragma once

#include "monitor/tracee/stub_thread.h"
#include "transport/gpr.capnp.h"

namespace gpr {

// The thread is in its stub, the stack of which is no alternate one: there the kernel neither says
// SS_ONSTACK nor refuses a change.
Task<void> put_alt_stack(StubThread& stub, wire::Crossing::Builder crossing);
Task<void> take_alt_stack(StubThread& stub, wire::Crossing::Reader crossing);

}  // namespace gpr
