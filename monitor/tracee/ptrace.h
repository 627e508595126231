// The ptrace requests we use, with their errors as values. ESRCH is ordinary: the thread died.
#pragma once

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>

#include <string_view>

#include "base/result.h"

namespace gpr::trace {

Result<void> seize(pid_t tid, long options);
Result<user_regs_struct> registers(pid_t tid);
Result<void> set_registers(pid_t tid, user_regs_struct regs);
Result<siginfo_t> signal_info(pid_t tid);
Result<void> set_signal_info(pid_t tid, siginfo_t info);
Result<unsigned long> event_message(pid_t tid);
// These do nothing if the thread is gone: a wait status reports its death.
void resume(pid_t tid, int signal = 0);
void single_step(pid_t tid, int signal = 0);
void resume_to_call(pid_t tid, int signal = 0);  // to the entry or exit of the next system call
void interrupt(pid_t tid);
void stay_stopped(pid_t tid);  // in a group-stop, until SIGCONT
// The thread must be in a ptrace stop. Bit n-1 is signal n, here and below.
uint64_t signal_mask(pid_t tid);
void set_signal_mask(pid_t tid, uint64_t mask);
// Until the thread gets the program's mask again.
inline void block_all_signals(pid_t tid) { set_signal_mask(tid, ~0ULL); }

inline constexpr long home_options = PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                                     PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT |
                                     PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACESECCOMP;
inline constexpr long acceptor_options = PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE;

// A line of signals in /proc/PID/status, such as "SigCgt:": bit n-1 is signal n.
uint64_t signal_set(pid_t pid, std::string_view name);
uint64_t pending_signals(pid_t tid);  // of the thread and of its process

// For a thread that has been stopped in its call, or at its end: makes it begin that call again.
void take_call_back(user_regs_struct& regs);
void take_call_back(pid_t tid, user_regs_struct& regs);

// What a system call that was interrupted leaves in rax for the kernel's own use.
inline constexpr long restart_sys = 512, restart_nointr = 513, restart_nohand = 514,
                      restart_block = 516;
constexpr bool is_restart(long result) {
    return result == -restart_sys || result == -restart_nointr || result == -restart_nohand ||
           result == -restart_block;
}

// Changes the registers of a thread that stopped inside a system call such that the call is made
// again wherever they are resumed, on any node. It begins anew with its whole timeout: only the
// kernel thread that made it knows, through restart_syscall, how much time has passed.
void rewind_interrupted_call(user_regs_struct& regs);
// Changes the registers such that the thread continues after its call, which another kernel has
// made, or repeats it if a signal interrupted it there.
void return_from_call(user_regs_struct& regs, uint64_t number, long result);

}  // namespace gpr::trace
