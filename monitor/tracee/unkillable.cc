#include "monitor/tracee/unkillable.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>

#include "base/fd.h"
#include "monitor/tracee/ptrace.h"

namespace gpr {

namespace {

bool is_first_of_namespace(pid_t process) {
    std::ifstream in(fmt::format("/proc/{}/status", process));
    for (std::string line; std::getline(in, line);) {
        // Its pids in all namespaces, from ours to its innermost.
        if (line.starts_with("NSpid:")) return line.ends_with("\t1");
    }
    return false;
}

bool is_by_instruction(const siginfo_t& info) {
    switch (info.si_signo) {
        case SIGSEGV:
        case SIGBUS:
        case SIGILL:
        case SIGFPE:
        case SIGTRAP:
        case SIGSYS: return info.si_code > 0;
        default: return false;
    }
}

}  // namespace

bool may_not_die(pid_t process, pid_t tid, int signal) {
    auto info = trace::signal_info(tid);
    if (!info || !is_by_instruction(*info)) return false;
    uint64_t handled = trace::signal_set(process, "SigCgt:");
    return !(handled >> (signal - 1) & 1) && is_first_of_namespace(process);
}

void let_die(pid_t tid) {
    auto info = trace::signal_info(tid);
    auto regs = trace::registers(tid);
    if (info && regs) {
        // These signals come after the instruction (int3, or a trapped syscall): step back to it.
        if (info->si_signo == SIGTRAP && info->si_code == SI_KERNEL) regs->rip -= 1;
        if (info->si_signo == SIGSYS) regs->rip -= 2;
        regs->orig_rax = ~0UL;
        trace::set_registers(tid, *regs);
    }
    ::ptrace(PTRACE_DETACH, tid, nullptr, 0L);
}

Task<void> until_gone(Loop& loop, pid_t process) {
    Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
    if (!pidfd) co_return;
    OneShot<bool> gone(loop);
    auto watch = loop.watch(pidfd.get(), POLLIN, [&gone](uint32_t) { gone.set(true); });
    co_await gone;
}

}  // namespace gpr
