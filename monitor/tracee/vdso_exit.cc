#include "monitor/tracee/vdso_exit.h"

#include <csignal>

#include "monitor/tracee/ptrace.h"

namespace gpr {
namespace {

constexpr uint64_t bit(int signal) { return 1ULL << (signal - 1); }
// The kernel raises them whether they are blocked or not, and then forgets their handlers.
constexpr uint64_t of_instructions =
    bit(SIGTRAP) | bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE) | bit(SIGILL) | bit(SIGSYS);

}  // namespace

bool VdsoExit::may_wait(int signal) { return !(bit(signal) & of_instructions); }

// A signal that is blocked when it is handed back to its thread becomes pending again as it was.
VdsoExit::VdsoExit(pid_t tid, int signal) : tid_(tid), mask_(trace::signal_mask(tid)) {
    // The trap of a step must not be blocked: the kernel would forget the program's handler of it.
    trace::set_signal_mask(tid, ~of_instructions | (mask_ & ~bit(SIGTRAP)));
    trace::single_step(tid, signal);
}

VdsoExit::Progress VdsoExit::on_stop(WaitStatus status, bool is_in_vdso) const {
    if (status.ended()) return Progress::stands;
    // Somebody's interrupt. The signal of a step that has been made may still be to come.
    if (status.kind == WaitStatus::Kind::trap_stop) {
        trace::single_step(tid_);
        return Progress::steps;
    }
    auto info = trace::signal_info(tid_);
    const bool stepped = status.kind == WaitStatus::Kind::signal_stop && info &&
                         status.value == SIGTRAP &&
                         (info->si_code == TRAP_TRACE || info->si_code == TRAP_BRKPT ||
                          info->si_code == SIGTRAP);  // the second after a system call
    if (stepped && is_in_vdso) {
        trace::single_step(tid_);
        return Progress::steps;
    }
    trace::set_signal_mask(tid_, mask_);
    if (!stepped) return Progress::stands;
    trace::resume(tid_);
    return Progress::left;
}

}  // namespace gpr
