// The first process of a pid namespace. No signal ends it for which it has no handler, except one
// that an instruction of its own causes; but not even that while it is traced: force_sig() clears
// SIGNAL_UNKILLABLE of untraced processes only (linux/kernel/signal.c).
#pragma once

#include <sys/types.h>

#include "base/task.h"
#include "transport/loop.h"

namespace gpr {

// The thread is in the stop before such a signal, of which the kernel would make nothing, so that
// the instruction would cause it again, without end.
bool may_not_die(pid_t process, pid_t tid, int signal);
// It is let go of, does the same once more, and dies of it. Its tracer hears no more of it.
void let_die(pid_t tid);
// Until there is no such process any more.
Task<void> until_gone(Loop& loop, pid_t process);

}  // namespace gpr
