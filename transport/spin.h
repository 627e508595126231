// Decides whether to poll for events a little before sleeping. Being woken from another processor
// costs 20 to 40 µs, most of a round trip; polling occupies a processor that others might want.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "base/fd.h"

namespace gpr {

// Decides by the outcome of the last polls. Pure.
class SpinHistory {
public:
    // Whether to poll now. Call it once for each sleep.
    bool wanted();
    // Polling has ended: an event came, or none did.
    void ended(bool found);

private:
    static constexpr uint32_t most_skipped = 256;
    uint32_t skip_ = 0;  // number of sleeps to skip polling for
    uint32_t last_skipped_ = 0;
};

// Whether other threads need the processors that this one may use. The kernel counts how long this
// thread was ready but did not run; more than a fifth of the time counts as yes.
class Contention {
public:
    // `schedstat` is a thread's /proc/TID/schedstat; without it, there never is contention.
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
