#include "monitor/home/sent_signal.h"

#include <sys/syscall.h>

#include "monitor/tracee/ptrace.h"

namespace gpr {

std::optional<SentSignal> sent_signal(uint32_t number, const SyscallArguments& args) {
    auto id = [&](size_t i) { return static_cast<pid_t>(args[i]); };
    SentSignal sent;
    switch (number) {
        case SYS_kill:
        case SYS_rt_sigqueueinfo: sent = {id(1), id(0) > 0 ? id(0) : 0, 0}; break;
        case SYS_tkill: sent = {id(1), 0, id(0)}; break;
        case SYS_tgkill:
        case SYS_rt_tgsigqueueinfo: sent = {id(2), id(0), id(1)}; break;
        case SYS_pidfd_send_signal: sent = {id(1), 0, 0}; break;
        default: return std::nullopt;
    }
    if (sent.number < 1 || sent.number > 64) return std::nullopt;
    return sent;
}

bool is_about_to_be_taken(const HomeProcess& process, const SentSignal& signal) {
    uint64_t bit = 1ULL << (signal.number - 1);
    if (!(process.caught_signals & bit)) return false;
    for (const auto& [tid, thread] : process.threads) {
        if (thread->helper || !thread->remote() || (signal.thread != 0 && tid != signal.thread)) {
            continue;
        }
        const char* where = signal.thread != 0 ? "SigPnd:" : "ShdPnd:";
        bool waits = trace::signal_set(tid, where) & bit;
        if (!waits) return false;
        if (!(trace::signal_set(tid, "SigBlk:") & bit)) return true;
    }
    return false;
}

}  // namespace gpr
