// Timers and limits on CPU time, which no kernel can keep if the time is spent on two nodes. This
// asks the nodes for the time used, but never sooner than a limit could have been reached.
// docs/decisions/0028-cpu-timers.md
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>

#include "monitor/home/part.h"
#include "transport/wire.h"

namespace gpr {
struct CpuClock;
struct ForwardedCall;
struct IntervalTimer;
}  // namespace gpr

namespace gpr::home {

struct TimerCall;

class CpuTiming {
public:
    explicit CpuTiming(Home& home) : home_(home) {}

    Task<void> send_pending_timers(HomeProcess& process);
    Task<std::optional<int64_t>> timer_call_in_bounce(HomeProcess& process,
                                                      const ForwardedCall& call);
    Task<void> timer_call_here(HomeThread& thread, Notification n);
    void note_timer_in_bounce(const HomeThread& thread, const ForwardedCall& call);
    void watch_cpu_limit(HomeProcess& process);
    // The interval timers that it had at rest go on: where all of its code is at the acceptor, as
    // timers of that acceptor's kernel, else as ours.
    void tell_timers(HomeProcess& process, NodeId node, wire::ProcessStart::Builder start) const;
    void take_up_timers(HomeProcess& process);
    // Such a process cannot come home: Homecoming::can_leave().
    void note_timers_away(pid_t pid);
    static void name_cpu_timer(const HomeThread& thread, int signal);

private:
    struct NewTimer {
        int id = 0;
        std::optional<sigevent> event;
    };
    Task<uint64_t> cpu_clock(pid_t pid, CpuClock clock);
    Task<int64_t> use_cpu_timer(pid_t pid, const TimerCall& call, std::array<int64_t, 4>& words);
    void note_timer_call(const HomeThread& thread, uint64_t number, const uint64_t* args,
                         int64_t result, const NewTimer& made);
    Task<void> set_here(pid_t pid, IntervalTimer timer);
    Task<void> run_cpu_timers(pid_t pid);
    Task<void> fire_cpu_timer(pid_t pid, int id, uint64_t now);

    Home& home_;
    uint64_t cpu_timers_turns_ = 0;
};

}  // namespace gpr::home
