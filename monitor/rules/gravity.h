// Decides whether a thread that runs neutral code here should move to the other node ("there")
// because what it uses is there: its calls are forwarded, or its pages come from there. This is the
// ski-rental problem: the thread stays until staying has cost as much as two crossings. If it is
// soon called back, it waits twice as long before it moves again.
#pragma once

#include <algorithm>
#include <chrono>

namespace gpr {

class Gravity {
public:
    using Clock = std::chrono::steady_clock;

    // A call was forwarded there.
    void forwarded() { cost_ += of_call; }
    // A page was fetched from there. Unlike a call, it costs only once if the thread stays.
    void faulted() { cost_ += of_fault; }
    [[nodiscard]] bool pulls() const { return cost_ >= patience_; }
    // The thread should move, but its code must not leave now.
    void kept() { cost_ = 0; }

    void left(Clock::time_point now) { left_at_ = now; }
    // The thread has come back, for any reason. missed: pages that it had to wait for there.
    void arrived(Clock::time_point now, size_t missed = 0) {
        if (left_at_ != Clock::time_point{}) {
            const auto away = now - left_at_;
            shortest_ = std::min(shortest_, away);
            // The shortest stay so far took little more than the two crossings, about four round
            // trips.
            const bool in_vain = away < shortest_ + (1 + missed) * shortest_ / 4;
            patience_ = in_vain ? std::min(2 * patience_, most) : std::max(patience_ / 2, least);
        }
        left_at_ = {};
        cost_ = 0;
    }

private:
    static constexpr unsigned of_fault = 1, of_call = 16;
    // Two crossings take about as long as four round trips (bench/reports).
    static constexpr unsigned least = 4 * of_call, most = 4096 * of_call;

    unsigned cost_ = 0;  // since it arrived
    unsigned patience_ = least;
    Clock::duration shortest_ = std::chrono::seconds(1);
    Clock::time_point left_at_{};  // when gravity moved it; zero: something else did
};

}  // namespace gpr
