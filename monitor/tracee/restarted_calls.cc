#include "monitor/tracee/restarted_calls.h"

#include <sys/syscall.h>

#include "monitor/tracee/ptrace.h"

namespace gpr {

namespace {

bool is_continued(const user_regs_struct& regs) {
    return static_cast<long>(regs.rax) == -trace::restart_block &&
           static_cast<long>(regs.orig_rax) >= 0;
}

}  // namespace

void RestartedCalls::note(pid_t tid, WaitStatus status) {
    using Kind = WaitStatus::Kind;
    if (status.ended()) {
        numbers_.erase(tid);
        return;
    }
    const bool may_interrupt = status.kind == Kind::trap_stop || status.kind == Kind::group_stop ||
                               status.kind == Kind::signal_stop;
    if (!may_interrupt) return;
    if (auto regs = trace::registers(tid)) note(tid, *regs);
}

void RestartedCalls::note(pid_t tid, const user_regs_struct& regs) {
    if (is_continued(regs) && regs.orig_rax != SYS_restart_syscall) numbers_[tid] = regs.orig_rax;
}

void RestartedCalls::name(pid_t tid, user_regs_struct& regs) const {
    if (!is_continued(regs) || regs.orig_rax != SYS_restart_syscall) return;
    const auto call = numbers_.find(tid);
    if (call != numbers_.end()) regs.orig_rax = call->second;
}

}  // namespace gpr
