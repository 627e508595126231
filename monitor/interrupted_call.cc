#include "monitor/interrupted_call.h"

#include "monitor/ptrace.h"
#include "syscall/table.h"

namespace gpr {

void restart_what_is_never_interrupted(pid_t tid) {
    auto regs = trace::registers(tid);
    bool interrupted = regs && static_cast<long>(regs->orig_rax) >= 0 &&
                       static_cast<long>(regs->rax) == -trace::restart_sys;
    if (!interrupted) return;
    const Row* row = find_row(static_cast<uint32_t>(regs->orig_rax));
    if (!row || row->blocks()) return;
    regs->rax = static_cast<uint64_t>(-trace::restart_nointr);
    trace::set_registers(tid, *regs);
}

}  // namespace gpr
