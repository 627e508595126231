// What seccomp does to a call when a signal comes before its supervisor has seen it.
#pragma once

#include <sys/types.h>

namespace gpr {

// The thread is in the stop before a signal's delivery. seccomp has ended its call with
// ERESTARTSYS, which a handler without SA_RESTART turns into EINTR, even for a call that never ends
// so on Linux. Such a call is made to begin again in any case.
void restart_what_is_never_interrupted(pid_t tid);

}  // namespace gpr
