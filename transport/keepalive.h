// Decides when to ping a quiet peer and when to give it up. Pure code.
#pragma once

#include <chrono>
#include <cstdint>

namespace gpr {

class Keepalive {
public:
    using Duration = std::chrono::nanoseconds;
    enum class Verdict { nothing, ping, dead };

    static constexpr Duration tick_interval = std::chrono::milliseconds(250);
    static constexpr Duration ping_after = std::chrono::seconds(1);
    static constexpr Duration dead_after = std::chrono::milliseconds(4500);
    // A peer whose kernel acknowledges what it is sent may be waiting for a processor.
    static constexpr Duration stuck_after = std::chrono::seconds(20);

    // To be called every tick_interval, after reading what the socket has. If this process has not
    // run for much longer, the time counts as one tick, because it says nothing about the peer.
    Verdict tick(Duration now, uint64_t bytes_in, uint64_t bytes_out, bool host_answers) {
        Duration passed = started_ ? now - last_tick_ : Duration{0};
        if (passed > 2 * tick_interval) passed = tick_interval;
        started_ = true;
        last_tick_ = now;
        silence_ = bytes_in == last_in_ ? silence_ + passed : Duration{0};
        quiet_ = bytes_out == last_out_ ? quiet_ + passed : Duration{0};
        last_in_ = bytes_in;
        last_out_ = bytes_out;
        if (silence_ >= (host_answers ? stuck_after : dead_after)) return Verdict::dead;
        if (quiet_ < ping_after) return Verdict::nothing;
        quiet_ = Duration{0};  // a ping that cannot be sent is not repeated at every tick
        return Verdict::ping;
    }

    [[nodiscard]] Duration silence() const { return silence_; }

private:
    bool started_ = false;
    Duration last_tick_{};
    Duration silence_{};  // since the last byte arrived
    Duration quiet_{};    // since the last byte was sent
    uint64_t last_in_ = 0;
    uint64_t last_out_ = 0;
};

}  // namespace gpr
