// What a process at rest does, as the kernel counts it, and whether that is computing: work for
// which an acceptor is as good as home, or better.
// docs/decisions/0051-processes-rest-at-home.md
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace gpr {

struct RestingLoad {
    using Nanoseconds = std::chrono::duration<double, std::nano>;

    double busy = 0, user = 0;  // processors; user: of those, outside of the kernel
    double transfers = 0;       // calls that read or write, per nanosecond

    // wall: over which the rest was counted. user_ns is counted in ticks: it may be one too small.
    static RestingLoad over(Nanoseconds wall, uint64_t busy_ns, uint64_t user_ns,
                            uint64_t transfers) {
        constexpr double tick_ns = 10'000'000;
        const double time = std::max(1.0, wall.count()), used = static_cast<double>(busy_ns);
        const double user = std::min(used, static_cast<double>(user_ns) + tick_ns);
        return {used / time, user / time, static_cast<double>(transfers) / time};
    }

    // Of several processes together.
    RestingLoad& operator+=(const RestingLoad& other) {
        busy += other.busy;
        user += other.user;
        transfers += other.transfers;
        return *this;
    }

    // of_call: what a call that home makes for a process at an acceptor costs.
    [[nodiscard]] bool computes(Nanoseconds of_call) const {
        return busy >= least_busy && user >= (1 - most_system) * busy &&
               transfers * of_call.count() <= most_time_in_calls * busy;
    }
    [[nodiscard]] bool is_idle() const { return busy < least_busy / 2; }

private:
    // It uses at least this much of a processor, which others may want as well, and at most this
    // part of that in the kernel,
    static constexpr double least_busy = 0.2, most_system = 0.25;
    // and its reads and writes would take at most this part: from an acceptor, each is a round
    // trip.
    static constexpr double most_time_in_calls = 0.1;
};

}  // namespace gpr
