#include "monitor/tracee/cpu_timers.h"

#include <time.h>

#include <algorithm>
#include <climits>

namespace gpr {

// include/linux/posix-timers_types.h: a dynamic clock id is ~pid << 3; the low bits say which kind
// of clock it is, where 3 is a clock that is a descriptor.
std::optional<CpuClockName> cpu_clock_name(clockid_t clock) {
    constexpr clockid_t per_thread = 4, kind = 3, descriptor = 3, user_only = 1;
    if (clock == CLOCK_PROCESS_CPUTIME_ID) return CpuClockName{};
    if (clock == CLOCK_THREAD_CPUTIME_ID) return CpuClockName{true, 0, false};
    if (clock >= 0 || (clock & kind) == descriptor) return std::nullopt;
    return CpuClockName{(clock & per_thread) != 0, ~(clock >> 3), (clock & kind) == user_only};
}

void CpuTimers::remove_created() {
    std::erase_if(timers_, [](const auto& entry) { return entry.first >= 0; });
}

CpuTimers::Setting CpuTimers::set(int id, uint64_t now, uint64_t due, uint64_t interval) {
    Setting before = get(id, now);
    Timer& timer = timers_.at(id);
    timer.due = due;
    timer.missed = 0;
    timer.interval = interval;
    return before;
}

CpuTimers::Setting CpuTimers::get(int id, uint64_t now) const {
    const Timer& timer = timers_.at(id);
    if (timer.due == 0) return {0, timer.interval};
    // A timer that is due but whose signal has not been sent yet shows the smallest time above
    // zero.
    return {timer.due > now ? timer.due - now : 1, timer.interval};
}

std::vector<CpuClock> CpuTimers::clocks() const {
    std::vector<CpuClock> clocks;
    for (const auto& [id, timer] : timers_) {
        if (timer.due != 0) clocks.push_back(timer.clock);
    }
    std::ranges::sort(clocks);
    clocks.erase(std::ranges::unique(clocks).begin(), clocks.end());
    return clocks;
}

std::vector<int> CpuTimers::expire(CpuClock clock, uint64_t now) {
    std::vector<int> expired;
    for (auto& [id, timer] : timers_) {
        if (timer.due == 0 || timer.clock != clock || now < timer.due) continue;
        expired.push_back(id);
        if (timer.interval == 0) {
            timer.due = 0;
        } else {
            uint64_t late = (now - timer.due) / timer.interval;
            timer.missed += late;
            timer.due += (late + 1) * timer.interval;
        }
    }
    return expired;
}

std::optional<int> CpuTimers::send(int id, bool pending) {
    Timer& timer = timers_.at(id);
    if (pending) {
        timer.missed++;
        return std::nullopt;
    }
    timer.told = static_cast<int>(std::min<uint64_t>(timer.missed, INT_MAX));  // DELAYTIMER_MAX
    timer.missed = 0;
    return timer.told;
}

std::optional<uint64_t> CpuTimers::left(CpuClock clock, uint64_t now) const {
    std::optional<uint64_t> least;
    for (const auto& [id, timer] : timers_) {
        if (timer.due == 0 || timer.clock != clock) continue;
        uint64_t left = timer.due > now ? timer.due - now : 0;
        least = std::min(least.value_or(left), left);
    }
    return least;
}

}  // namespace gpr
