#include "monitor/node/thread_progress.h"

#include <algorithm>
#include <optional>

#include "monitor/tracee/thread_status.h"

namespace gpr {

namespace {

constexpr std::chrono::microseconds first_look{200}, longest_pause{5000};
// Stops for its tracer that may come before: CallStops has one more.
constexpr int most_stops_seen = 8;
// One that stands before its instruction for longer than that is not about to begin.
constexpr std::chrono::milliseconds longest_before_it{500};

}  // namespace

Task<void> thread_gets_on(Loop& loop, pid_t tid, Progress enough) {
    uint64_t cpu_before_ns = status_of_thread(tid).cpu_ns;
    const auto began_by = Clock::now() + longest_before_it;
    const auto enough_ns = static_cast<uint64_t>(enough.on_processor.count());
    std::optional<Clock::time_point> asleep_since;
    int stops_seen = 0;
    for (auto pause = first_look;; pause = std::min(2 * pause, longest_pause)) {
        co_await loop.sleep(pause);
        const ThreadStatus now = status_of_thread(tid);
        const bool stands_before =
            enough.begins_at != 0 && now.call < 0 && now.instruction == enough.begins_at;
        if (stands_before && Clock::now() < began_by) {
            cpu_before_ns = now.cpu_ns;
            continue;
        }
        if (now.letter == 'X' || now.cpu_ns - cpu_before_ns >= enough_ns) co_return;
        const bool is_stopped = now.letter == 't' && stops_seen++ < most_stops_seen;
        if (now.letter == 'R' || is_stopped) {
            asleep_since.reset();
            continue;
        }
        if (!asleep_since) asleep_since = Clock::now();
        if (Clock::now() - *asleep_since >= enough.asleep) co_return;
    }
}

}  // namespace gpr
