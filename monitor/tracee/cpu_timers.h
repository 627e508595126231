// Timers on CPU time that is spent on several nodes, so that no kernel sees the sum
// (docs/decisions/0028-cpu-timers.md): ITIMER_VIRTUAL, ITIMER_PROF, timer_create(2) on CPU clocks,
// and RLIMIT_CPU. This class computes when each is due; the caller supplies the sums. All times are
// ns of CPU time.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace gpr {

// What a timer counts: the CPU time of its process, or of one thread.
struct CpuClock {
    pid_t thread = 0;        // 0: of the whole process
    bool user_only = false;  // CPUCLOCK_VIRT
    auto operator<=>(const CpuClock&) const = default;
};

// A clockid_t that counts CPU time, of the caller or of another process or thread.
struct CpuClockName {
    bool of_thread = false;
    pid_t id = 0;  // process or thread id; 0: the caller
    bool user_only = false;
};
std::optional<CpuClockName> cpu_clock_name(clockid_t clock);

// The signal of a timer made by timer_create(2): struct sigevent.
struct TimerSignal {
    int number = 0;    // 0: none
    pid_t thread = 0;  // SIGEV_THREAD_ID; 0: to the process
    uint64_t value = 0;
};

class CpuTimers {
public:
    // Timer ids: the kernel's, or one of these.
    static constexpr int interval_virtual = -1, interval_prof = -2, limit = -3;

    struct Setting {
        uint64_t left = 0;  // 0: not armed
        uint64_t interval = 0;
    };

    [[nodiscard]] bool has(int id) const { return timers_.contains(id); }
    [[nodiscard]] CpuClock clock_of(int id) const { return timers_.at(id).clock; }

    [[nodiscard]] TimerSignal signal_of(int id) const { return timers_.at(id).signal; }
    // Overruns counted for the last signal that was sent (timer_getoverrun(2)).
    [[nodiscard]] int overrun_of(int id) const { return timers_.at(id).told; }

    // Adds a timer that is not armed. It replaces an earlier one of the same id.
    void add(int id, CpuClock clock, TimerSignal signal = {}) {
        timers_[id] = Timer{.clock = clock, .signal = signal};
    }
    void remove(int id) { timers_.erase(id); }
    // At exec: only the interval timers and the limit survive.
    void remove_created();

    // now: the clock's current value; due: the value at which the timer expires, 0 disarms it.
    // Returns the previous setting.
    Setting set(int id, uint64_t now, uint64_t due, uint64_t interval);
    [[nodiscard]] Setting get(int id, uint64_t now) const;

    // The clocks that armed timers use.
    [[nodiscard]] std::vector<CpuClock> clocks() const;
    // Returns the timers that have expired when this clock shows `now`. Periodic ones are armed
    // again, for a time after `now`.
    std::vector<int> expire(CpuClock clock, uint64_t now);
    // A timer has expired. Returns the overrun count to send with its signal, or nullopt if its
    // previous signal is still pending.
    std::optional<int> send(int id, bool pending);
    // CPU time until the next timer on this clock expires; nullopt if none is armed.
    [[nodiscard]] std::optional<uint64_t> left(CpuClock clock, uint64_t now) const;

private:
    struct Timer {
        CpuClock clock;
        uint64_t due = 0;  // 0: not armed
        uint64_t interval = 0;
        TimerSignal signal;
        uint64_t missed = 0;  // expirations since its signal was sent
        int told = 0;
    };

    std::map<int, Timer> timers_;
};

}  // namespace gpr
