// What the kernel does with a process's signals: every struct sigaction that is not as in a process
// that never called sigaction(2).
#pragma once

#include <vector>

#include "base/task.h"
#include "monitor/tracee/mailbox.h"
#include "monitor/tracee/signal_action.h"
#include "monitor/tracee/stub_thread.h"

namespace gpr {

// Handlers, what is ignored, and what SA_RESETHAND has left, which is SIG_DFL with flags. Uses the
// first bounce area.
Task<std::vector<SignalAction>> kernel_actions(StubThread& stub, Mailbox& mailbox);

}  // namespace gpr
