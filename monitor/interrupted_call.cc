#include "monitor/interrupted_call.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/user.h>

#include "monitor/ptrace.h"
#include "syscall/table.h"

namespace gpr {

namespace {

bool may_wait(const Row& row, const user_regs_struct& regs) {
    if (row.number != SYS_futex) return row.blocks();
    switch (regs.rsi & FUTEX_CMD_MASK) {
        case FUTEX_WAKE:
        case FUTEX_REQUEUE:
        case FUTEX_CMP_REQUEUE:
        case FUTEX_WAKE_OP:
        case FUTEX_UNLOCK_PI:
        case FUTEX_TRYLOCK_PI:
        case FUTEX_WAKE_BITSET: return false;
        default: return true;
    }
}

}  // namespace

void restart_what_is_never_interrupted(pid_t tid) {
    auto regs = trace::registers(tid);
    bool interrupted = regs && static_cast<long>(regs->orig_rax) >= 0 &&
                       static_cast<long>(regs->rax) == -trace::restart_sys;
    if (!interrupted) return;
    const Row* row = find_row(static_cast<uint32_t>(regs->orig_rax));
    if (!row || may_wait(*row, *regs)) return;
    regs->rax = static_cast<uint64_t>(-trace::restart_nointr);
    trace::set_registers(tid, *regs);
}

}  // namespace gpr
