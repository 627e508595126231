// Timers on CPU time that is used on several nodes, where no kernel sees the sum
// (docs/decisions/0028-cpu-timers.md): ITIMER_VIRTUAL, ITIMER_PROF, those of timer_create(2) and
// the limit of CPU time. Here is when each is due; who knows the sums asks. Times in ns of CPU
// time.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace gpr {

// What a timer counts: of its process, or of one thread.
struct CpuClock {
    pid_t thread = 0;        // 0: of the whole process
    bool user_only = false;  // CPUCLOCK_VIRT
    auto operator<=>(const CpuClock&) const = default;
};

// A clockid_t that counts CPU time, of the caller or of somebody else.
struct CpuClockName {
    bool of_thread = false;
    pid_t id = 0;  // of the process or thread; 0: the caller
    bool user_only = false;
};
std::optional<CpuClockName> cpu_clock_name(clockid_t clock);

// What a timer of timer_create(2) sends: struct sigevent.
struct TimerSignal {
    int number = 0;    // 0: none
    pid_t thread = 0;  // SIGEV_THREAD_ID; 0: to the process
    uint64_t value = 0;
};

class CpuTimers {
public:
    // A kernel's timer id, or one of these.
    static constexpr int interval_virtual = -1, interval_prof = -2, limit = -3;

    struct Setting {
        uint64_t left = 0;  // 0: not armed
        uint64_t interval = 0;
    };

    [[nodiscard]] bool has(int id) const { return timers_.contains(id); }
    [[nodiscard]] CpuClock clock_of(int id) const { return timers_.at(id).clock; }

    [[nodiscard]] TimerSignal signal_of(int id) const { return timers_.at(id).signal; }
    // How often it came while its signal was still to be handled: of the last one that was sent.
    [[nodiscard]] int overrun_of(int id) const { return timers_.at(id).told; }

    // Not armed yet. One that was called so is gone.
    void add(int id, CpuClock clock, TimerSignal signal = {}) {
        timers_[id] = Timer{.clock = clock, .signal = signal};
    }
    void remove(int id) { timers_.erase(id); }
    // exec keeps the intervals and the limit.
    void remove_created();

    // now: what its clock shows; due: the same, later; 0 disarms.
    Setting set(int id, uint64_t now, uint64_t due, uint64_t interval);
    [[nodiscard]] Setting get(int id, uint64_t now) const;

    // Those that some timer waits for.
    [[nodiscard]] std::vector<CpuClock> clocks() const;
    // The timers that are due when this clock shows `now`; what comes again is armed again, later
    // than now.
    std::vector<int> expire(CpuClock clock, uint64_t now);
    // One has expired. Gives the overrun to send with its signal; nothing: one is still pending.
    std::optional<int> send(int id, bool pending);
    // Until the next one. Nothing: none waits for it.
    [[nodiscard]] std::optional<uint64_t> left(CpuClock clock, uint64_t now) const;

private:
    struct Timer {
        CpuClock clock;
        uint64_t due = 0;  // 0: not armed
        uint64_t interval = 0;
        TimerSignal signal;
        uint64_t missed = 0;  // times that it came since its signal was sent
        int told = 0;
    };

    std::map<int, Timer> timers_;
};

}  // namespace gpr
