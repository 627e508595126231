// Timers on CPU-time clocks, for processes whose code all runs here: as the CPU time is spent here,
// these timers are this kernel's. All other timers are home's; in mixed sessions these are, too.
// The program cannot tell them apart: a timer's id is only a number.
#pragma once

#include <cstdint>
#include <vector>

#include "acceptor/worker/part.h"

namespace gpr {
struct IntervalTimer;
}  // namespace gpr

namespace gpr::worker {

class Timers {
public:
    explicit Timers(Worker& worker) : worker_(worker) {}

    Task<void> timer_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    // setitimer, getitimer
    Task<void> interval_timer_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    static void name_timer(RemoteProcess& process, RemoteThread& thread);
    // Empty if the process does not answer any more.
    Task<std::vector<IntervalTimer>> interval_timers(RemoteProcess& process);
    // Sets those of the image before, or those that the process had at home.
    static Task<void> inherit(RemoteProcess& process, std::vector<IntervalTimer> timers);

private:
    void tell_home(RemoteProcess& process);
    Task<int64_t> create_timer(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<int64_t> use_timer(RemoteProcess& process, Notification n);

    Worker& worker_;
};

}  // namespace gpr::worker
