// Whether a thread that runs neutral code here should go on at home, where its calls are made. Like
// renting or buying skis: it rents until that has cost what two crossings cost. Nobody knows
// whether it will soon be called back; each time it is, it waits twice as long before it goes
// again.
#pragma once

#include <algorithm>
#include <chrono>

namespace gpr {

class Gravity {
public:
    using Clock = std::chrono::steady_clock;

    // A call of home was made for it from here.
    void forwarded() { calls_++; }
    [[nodiscard]] bool pulls_home() const { return calls_ >= patience_; }

    void left(Clock::time_point now) { left_at_ = now; }
    // From home, by whatever made it come.
    void arrived(Clock::time_point now) {
        if (left_at_ != Clock::time_point{}) {
            const auto away = now - left_at_;
            shortest_ = std::min(shortest_, away);
            // The shortest was little more than the way there and back.
            const bool in_vain = away < shortest_ + shortest_ / 4;
            patience_ = in_vain ? std::min(2 * patience_, most) : std::max(patience_ / 2, least);
        }
        left_at_ = {};
        calls_ = 0;
    }

private:
    // Calls. Two crossings take about as long as this many round trips (bench/reports).
    static constexpr unsigned least = 4, most = 4096;

    unsigned calls_ = 0;  // since it came
    unsigned patience_ = least;
    Clock::duration shortest_ = std::chrono::seconds(1);
    Clock::time_point left_at_{};  // by gravity
};

}  // namespace gpr
