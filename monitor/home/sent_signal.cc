#include "monitor/home/sent_signal.h"

#include <algorithm>

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
                    id(places.thread)};
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
