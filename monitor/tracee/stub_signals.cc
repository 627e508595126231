#include "monitor/tracee/stub_signals.h"

#include <csignal>

#include "monitor/tracee/ptrace.h"
#include "stub/layout.h"

namespace gpr {

namespace {

constexpr uint64_t bit_of(int signal) { return 1ULL << (signal - 1); }

// signal(7): ignored, or stopping the process, by default.
constexpr uint64_t harmless = bit_of(SIGCHLD) | bit_of(SIGCONT) | bit_of(SIGURG) |
                              bit_of(SIGWINCH) | bit_of(SIGSTOP) | bit_of(SIGTSTP) |
                              bit_of(SIGTTIN) | bit_of(SIGTTOU);

bool is_by_instruction(const siginfo_t& info) {
    switch (info.si_signo) {
        case SIGSEGV:
        case SIGILL:
        case SIGFPE: return info.si_code > 0;
        case SIGBUS: return info.si_code > 0 && info.si_code != BUS_MCEERR_AO;
        default: return false;
    }
}

}  // namespace

bool is_fault_in_stub(pid_t tid) {
    auto info = trace::signal_info(tid);
    if (!info || !is_by_instruction(*info)) return false;
    auto regs = trace::registers(tid);
    return regs && regs->rip >> 32 == GPR_STUB_HIGH_WORD;
}

uint64_t deadly_signals(pid_t pid, uint64_t caught) {
    return ~(harmless | caught | trace::signal_set(pid, "SigCgt:") |
             trace::signal_set(pid, "SigIgn:"));
}

}  // namespace gpr
