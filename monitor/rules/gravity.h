// Decides whether a thread that runs neutral code here should move to the other node ("there")
// because what it uses is there: its calls are forwarded, or its pages come from there. This is the
// ski-rental problem: the thread stays until staying has cost as much as two crossings. If it is
// soon called back, or has mostly waited for pages there, it waits twice as long before it moves
// again.
#pragma once

#include <chrono>
#include <cstdint>

namespace gpr {

class Gravity {
public:
    using Clock = std::chrono::steady_clock;

    // A call was forwarded there.
    void forwarded();
    // A page was fetched from there. Unlike a call, it costs only once if the thread stays.
    void faulted();
    [[nodiscard]] bool pulls() const;
    // The thread should move, but its code must not leave now.
    void kept() { cost_ = 0; }

    void left(Clock::time_point now) { left_at_ = now; }
    // The thread has come back, for any reason. missed: pages that it had to wait for there.
    void arrived(Clock::time_point now, uint32_t missed = 0);
    // Pages that it had to wait for here since it arrived.
    [[nodiscard]] uint32_t stalls() const { return stalls_; }

private:
    // In sixteenths of a round trip.
    static constexpr unsigned of_fault = 1, of_call = 16;
    // Two crossings take about as long as four round trips (bench/reports).
    static constexpr unsigned least = 4 * of_call, most = 4096 * of_call;

    unsigned cost_ = 0;  // since it arrived
    uint32_t stalls_ = 0;
    unsigned patience_ = least;  // grows when it moved in vain
    Clock::duration shortest_ = std::chrono::seconds(1);
    Clock::time_point left_at_{};  // when gravity moved it; zero: something else did
};

}  // namespace gpr
