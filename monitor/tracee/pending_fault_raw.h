// Whether a stopped thread's last instruction has raised a signal.
#pragma once

#include <sys/types.h>

namespace gpr {

// The thread is in a ptrace stop, and a signal that its last instruction raised has yet to be
// delivered. It has to be delivered on this node: on another one the instruction is repeated and
// raises its own.
bool has_fault_pending(pid_t tid);

}  // namespace gpr
