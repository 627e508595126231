#include "monitor/tracee/pending_fault_raw.h"

#include <signal.h>
#include <sys/ptrace.h>

#include <array>

namespace gpr {

bool has_fault_pending(pid_t tid) {
    std::array<siginfo_t, 4> pending;
    __ptrace_peeksiginfo_args which{};
    which.nr = pending.size();
    long count = ptrace(PTRACE_PEEKSIGINFO, tid, &which, pending.data());
    for (long i = 0; i < count; i++) {
        const siginfo_t& info = pending[static_cast<size_t>(i)];
        bool fault = info.si_signo == SIGSEGV || info.si_signo == SIGBUS ||
                     info.si_signo == SIGFPE || info.si_signo == SIGILL ||
                     info.si_signo == SIGTRAP || info.si_signo == SIGSYS;
        if (fault && info.si_code > 0) return true;  // raised by the kernel
    }
    return false;
}

}  // namespace gpr
