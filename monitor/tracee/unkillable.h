// The first process of a pid namespace (SIGNAL_UNKILLABLE). A signal without a handler kills it
// only if an instruction of its own has raised the signal, and not even then while it is traced:
// force_sig() clears SIGNAL_UNKILLABLE of untraced processes only (linux/kernel/signal.c).
#pragma once

#include <sys/types.h>

#include "base/task.h"
#include "transport/loop.h"

namespace gpr {

// The thread is in the stop before such a signal. The kernel would drop it, and the instruction
// would raise it again without end.
bool may_not_die(pid_t process, pid_t tid, int signal);
// Detaches the thread, which repeats the instruction and is killed. Its tracer gets no more events
// of it.
void let_die(pid_t tid);
// Waits until the process is gone.
Task<void> until_gone(Loop& loop, pid_t process);

}  // namespace gpr
