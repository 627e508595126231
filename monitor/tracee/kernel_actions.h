// The kernel's signal dispositions of a process: every struct sigaction that differs from that of a
// process that never called sigaction(2).
#pragma once

#include <vector>

#include "base/task.h"
#include "monitor/tracee/mailbox.h"
#include "monitor/tracee/signal_action.h"
#include "monitor/tracee/stub_thread.h"

namespace gpr {

// Returns handlers, ignored signals, and what SA_RESETHAND leaves behind (SIG_DFL with flags). Uses
// the first bounce area.
Task<std::vector<SignalAction>> kernel_actions(StubThread& stub, Mailbox& mailbox);
// Sets one. The caller holds the stub's lock. Returns the kernel's result.
Task<int64_t> set_kernel_action(StubThread& stub, SignalAction action);

}  // namespace gpr
