#include "monitor/rules/gravity.h"

#include <algorithm>

namespace gpr {

void Gravity::forwarded() { cost_ += of_call; }

void Gravity::faulted() {
    cost_ += of_fault;
    ++stalls_;
}

bool Gravity::pulls() const { return cost_ >= patience_; }

void Gravity::arrived(Clock::time_point now, uint32_t missed) {
    if (left_at_ != Clock::time_point{}) {
        const auto away = now - left_at_;
        shortest_ = std::min(shortest_, away);
        // The shortest stay so far took little more than the two crossings, about four round
        // trips.
        const bool in_vain = away < shortest_ + (1 + missed) * shortest_ / 4;
        patience_ = in_vain ? std::min(2 * patience_, most) : std::max(patience_ / 2, least);
    }
    left_at_ = {};
    cost_ = stalls_ = 0;
}

}  // namespace gpr
