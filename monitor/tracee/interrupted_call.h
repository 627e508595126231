// System calls that a signal or a supervisor interrupts.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <array>
#include <functional>

#include "mm/address_space.h"
#include "monitor/tracee/context_raw.h"
#include "syscall/table.h"

namespace gpr {

// Whether the supervisor is asked about such a call before it is made and has not seen this one
// yet.
using CallArguments = std::array<uint64_t, 6>;
using IsUnseen = std::function<bool(const Row& row, const CallArguments& args)>;

// The thread is in a signal-delivery stop. seccomp has ended its call with ERESTARTSYS before its
// supervisor saw it; a handler without SA_RESTART would turn that into EINTR, even for a call that
// never returns EINTR on Linux or would not have waited. Programs do not expect EINTR from writing
// to a file, for example. So such a call is always restarted: the signal came before it.
void restart_what_has_not_begun(pid_t tid, const IsUnseen& is_unseen);

// Whether a call that opens a file by its name may wait: for the other end of a FIFO, or for a
// device. Only what the name stands for now can be looked at.
bool may_wait_to_open(pid_t tid, const Row& row, const CallArguments& args);

// Whether a stopped thread is in a system call of the program's: not in gpr's own (syscall/park.h),
// in which a shadow waits for orders when its call has ended.
bool is_in_programs_call(const user_regs_struct& regs);

// Ends a stopped thread's call with EINTR instead of restarting it, because another node has made
// it.
void end_interrupted_call(pid_t tid);

// Changes the context of a thread that stopped inside a call as trace::rewind_interrupted_call(),
// and notes the call if it has waited.
void suspend_call(ThreadContext& context);
// Of a stopped thread. before: the call that it was to make again when it went on last; it may have
// stopped before that.
SuspendedCall suspended_in(const ThreadContext& context, const SuspendedCall& before);
// The same as regs are, which the kernel has put there when the call was interrupted.
SuspendedCall suspended_by(const user_regs_struct& regs);
// Puts the registers of a thread that is about to make the call again, or whose supervisor has not
// seen it yet, behind the call, interrupted: this kernel then decides whether a signal ends it or
// it is repeated. False if the thread is elsewhere.
bool interrupt_suspended(const SuspendedCall& call, user_regs_struct& regs);
// The thread is in the stop before a signal's handler runs.
void interrupt_suspended(pid_t tid, SuspendedCall& call);
// The thread's supervisor sees a call of it. instruction_pointer: behind its instruction.
void note_reported(SuspendedCall& call, uint32_t number, uint64_t instruction_pointer);

// Whether a stopped thread is about to make restart_syscall, which continues a call that this
// node's kernel interrupted and no other kernel can continue. code: the mapping of its instruction
// pointer.
bool goes_on_with_call(const Mapping& code, const user_regs_struct& regs);

}  // namespace gpr
