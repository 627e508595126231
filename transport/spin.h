// When to look for events a little longer before sleeping. Being woken from another processor costs
// 20 to 40 µs, most of a round trip; looking costs a processor that somebody else might want.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "base/fd.h"

namespace gpr {

// Decides from how the last times went. Pure but for the clock readings it is given.
class SpinHistory {
public:
    // May it look now? Call once for each sleep.
    bool wanted();
    // An event came while it looked, or it looked in vain.
    void ended(bool found);

private:
    static constexpr uint32_t most_skipped = 256;
    uint32_t skip_ = 0;  // sleeps to let pass without looking
    uint32_t last_skipped_ = 0;
};

// Does somebody else want the processors that this thread may use? The kernel counts how long the
// thread has been ready and did not run; more than a fifth of the time says yes.
class Contention {
public:
    // A thread's /proc/TID/schedstat; without one there never is any contention.
    explicit Contention(Fd schedstat) : schedstat_(std::move(schedstat)) {}
    static Contention of_this_thread();
    bool found(std::chrono::steady_clock::time_point now);

private:
    [[nodiscard]] uint64_t delay_ns() const;

    Fd schedstat_;
    std::chrono::steady_clock::time_point looked_at_;
    uint64_t delay_ns_ = 0;
    bool found_ = false;
};

}  // namespace gpr
