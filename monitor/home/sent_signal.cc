#include "monitor/home/sent_signal.h"

#include <algorithm>

#include "monitor/tracee/process_stat.h"
#include "monitor/tracee/ptrace.h"
#include "syscall/table.h"

namespace gpr {

std::optional<SentSignal> sent_signal(uint32_t number, const SyscallArguments& args) {
    const SentPlaces places = details_of(number).sends;
    if (places.signal < 0) return std::nullopt;
    auto id = [&](int8_t place) {
        return place < 0 ? 0 : std::max(static_cast<pid_t>(args[static_cast<size_t>(place)]), 0);
    };
    SentSignal sent{static_cast<int>(args[static_cast<size_t>(places.signal)]), id(places.process),
                    id(places.thread), 0};
    if (sent.number < 1 || sent.number > 64) return std::nullopt;
    return sent;
}

Taking taking_of(const HomeProcess& process, const SentSignal& signal, bool met) {
    const uint64_t bit = 1ULL << (signal.number - 1);
    if (!(process.caught_signals & bit)) return Taking::done;
    const char* where = signal.thread != 0 ? "SigPnd:" : "ShdPnd:";
    std::optional<bool> pending;  // for all of them, if it is sent to the process
    Taking taking = Taking::done;
    for (const auto& [tid, thread] : process.threads) {
        if (thread->helper || !thread->remote() || (signal.thread != 0 && tid != signal.thread)) {
            continue;
        }
        if (!pending) pending = (trace::signal_set(tid, where) & bit) != 0;
        if (!*pending && met) return Taking::done;
        const auto state = scheduled(tid);
        // One that has just dequeued the signal runs, too, until it stops for it.
        const bool runs = state && state->state == 'R';
        if (!runs && !*pending) continue;
        if (*pending && (trace::signal_set(tid, "SigBlk:") & bit) != 0) continue;
        if (runs && !thread->is_in(HomeThread::Business::call)) return Taking::soon;
        taking = Taking::later;
    }
    return taking;
}

}  // namespace gpr
