// How many log lines strangers may cause, so that they cannot fill the disk. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace gpr {

struct LogAllowanceLimits {
    unsigned lines = 30;
    std::chrono::milliseconds per{10'000};
};

class LogAllowance {
public:
    using Time = std::chrono::steady_clock::time_point;

    explicit LogAllowance(const LogAllowanceLimits& limits) : limits_(limits) {}

    // Whether one more line may be written; counts it.
    [[nodiscard]] bool take(Time now) {
        if (!began_ || now - *began_ >= limits_.per) {
            began_ = now;
            said_ = 0;
        }
        if (said_ >= limits_.lines) return false;
        ++said_;
        return true;
    }
    // Counts a line that was suppressed.
    void keep_back() { ++kept_back_; }

    // How many lines were suppressed in the last period, once that is over; resets the count.
    [[nodiscard]] std::optional<uint64_t> over(Time now) {
        if (kept_back_ == 0 || (began_ && now - *began_ < limits_.per)) return {};
        const uint64_t kept_back = kept_back_;
        kept_back_ = 0;
        return kept_back;
    }
    [[nodiscard]] bool keeps_back() const { return kept_back_ != 0; }

private:
    LogAllowanceLimits limits_;
    std::optional<Time> began_;
    unsigned said_ = 0;
    uint64_t kept_back_ = 0;
};

}  // namespace gpr
