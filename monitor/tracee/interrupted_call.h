// System calls that a signal or a supervisor interrupts.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <array>
#include <functional>

#include "mm/address_space.h"
#include "syscall/table.h"

namespace gpr {

// Whether the supervisor is asked about such a call before it is made, and has not seen this one.
using CallArguments = std::array<uint64_t, 6>;
using IsUnseen = std::function<bool(const Row& row, const CallArguments& args)>;

// The thread is in the stop before a signal's delivery. seccomp has ended its call, which its
// supervisor had not seen, with ERESTARTSYS, which a handler without SA_RESTART turns into EINTR,
// even for a call that never ends so on Linux, or would not have waited: nobody writes to a file
// again because of EINTR. Such a call is made to begin again in any case; the signal came before
// it.
void restart_what_has_not_begun(pid_t tid, const IsUnseen& is_unseen);

// A stopped thread's call, which would begin again, ends with EINTR: another node has made it.
void end_interrupted_call(pid_t tid);

// A stopped thread stands before restart_syscall, by which the kernel that interrupted its call
// goes on with it; no other kernel can. code: what it stands in.
bool goes_on_with_call(const Mapping& code, const user_regs_struct& regs);

}  // namespace gpr
