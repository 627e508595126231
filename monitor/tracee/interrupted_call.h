// System calls that a signal or a supervisor interrupts.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include "mm/address_space.h"

namespace gpr {

// The thread is in the stop before a signal's delivery. seccomp has ended its call, which its
// supervisor had not seen, with ERESTARTSYS, which a handler without SA_RESTART turns into EINTR,
// even for a call that never ends so on Linux. Such a call is made to begin again in any case.
void restart_what_is_never_interrupted(pid_t tid);

// A stopped thread's call, which would begin again, ends with EINTR: another node has made it.
void end_interrupted_call(pid_t tid);

// A stopped thread stands before restart_syscall, by which the kernel that interrupted its call
// goes on with it; no other kernel can. code: what it stands in.
bool goes_on_with_call(const Mapping& code, const user_regs_struct& regs);

}  // namespace gpr
