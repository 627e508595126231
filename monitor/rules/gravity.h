// Whether a thread that runs neutral code here should go on at the other node, where what it uses
// is: its calls are made there, or its pages are there. Like renting or buying skis: it rents until
// that has cost what two crossings cost. Nobody knows whether it will soon be called back; each
// time it is, it waits twice as long before it goes again.
#pragma once

#include <algorithm>
#include <chrono>

namespace gpr {

class Gravity {
public:
    using Clock = std::chrono::steady_clock;

    // A call was made for it there.
    void forwarded() { cost_ += of_call; }
    // A page came for it from there. Unlike a call, it is paid once if the thread stays.
    void faulted() { cost_ += of_fault; }
    [[nodiscard]] bool pulls() const { return cost_ >= patience_; }
    // It should go, but the code that it runs now is not to leave.
    void kept() { cost_ = 0; }

    void left(Clock::time_point now) { left_at_ = now; }
    // From there, by whatever made it come. missed: pages that it had to wait for there.
    void arrived(Clock::time_point now, size_t missed = 0) {
        if (left_at_ != Clock::time_point{}) {
            const auto away = now - left_at_;
            shortest_ = std::min(shortest_, away);
            // The shortest was little more than the way there and back, which is four round trips.
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

    unsigned cost_ = 0;  // since it came
    unsigned patience_ = least;
    Clock::duration shortest_ = std::chrono::seconds(1);
    Clock::time_point left_at_{};  // by gravity
};

}  // namespace gpr
