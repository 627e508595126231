#include "monitor/node/running_threads.h"

#include <ctime>
#include <utility>

namespace gpr {

namespace {

// Longer, and what ran before its thread began to wait for us would count.
constexpr std::chrono::microseconds a_moment{50};
constexpr uint64_t tolerated_share = 4;  // one part in four: a thread that is falling asleep

uint64_t cpu_time_ns(pid_t process) {
    // What clock_getcpuclockid(3) returns, without the system call that it makes.
    const clockid_t clock = static_cast<clockid_t>(~static_cast<unsigned>(process) << 3 | 2);
    timespec time{};
    if (process <= 0 || clock_gettime(clock, &time) != 0) return 0;
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

bool RunningThreads::any(const Counts& counts, const EachProcess& each_process) {
    if (counts.waiting >= counts.threads + counts.helpers) return false;
    if (counts.waiting <= counts.helpers || counts.processes > most_processes) return true;
    uint64_t ran = 0;
    each_process([&](pid_t process) { ran += cpu_time_ns(process); });
    const auto now = Clock::now();
    const uint64_t before = std::exchange(ran_ns_, ran);
    const auto passed = now - std::exchange(looked_at_, now);
    if (passed > a_moment) return false;
    return ran > before && (ran - before) * tolerated_share >
                               static_cast<uint64_t>(std::chrono::nanoseconds(passed).count());
}

}  // namespace gpr
