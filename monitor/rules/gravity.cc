#include "monitor/rules/gravity.h"

#include <algorithm>

namespace gpr {

namespace {
// That a thread waits for at most, however often it went in vain.
constexpr unsigned most_prices = 16;
// On a slow link `most` would be long for a thread whose work changes: there it has this much
// patience, or a sixteenth of `most`.
constexpr std::chrono::seconds most_time{4};
}  // namespace

void Gravity::forwarded(Duration took) {
    // Never zero: rates are per round trip.
    took = std::max<Duration>(took, std::chrono::microseconds(1));
    round_trip_ = has_called_ ? std::min(round_trip_, took) : took;
    has_called_ = true;
    // What it waits for there, such as input, would take as long if the thread were there.
    took = std::min(took, 2 * round_trip_);
    cost_ += took;
    calls_ += took;
    waits_ += took;
}

void Gravity::faulted(uint64_t page, bool was_here, Duration wait) {
    if (wait == Duration{}) wait = wait_;
    wait_ = wait;
    waits_ += wait;
    ++stalls_;
    if (missed_.size() >= most_pages) missed_.clear();
    const bool again = !missed_.insert(page).second;
    if (!again) ++brought_;
    if (again) {
        cost_ += wait / again_share;
    } else if (was_here && last_.taken > 0) {
        last_.cost += wait;
        --last_.taken;
    } else {
        cost_ += wait / first_share;
    }
}

Gravity::Duration Gravity::price() const {
    if (last_.cost == Duration{}) return price_;
    return price_ == Duration{} ? last_.cost : (3 * price_ + last_.cost) / 4;
}

unsigned Gravity::doublings() const {
    if (last_.cost == Duration{}) return doublings_;
    if (last_.cost > last_.worth) return std::min(doublings_ + 1, most_doublings);
    return doublings_ == 0 ? 0 : doublings_ - 1;
}

Gravity::Duration Gravity::patience() const {
    const Duration once = std::max(least * round_trip_, price());
    const Duration in_time = std::min<Duration>(most * round_trip_, most_time);
    const Duration most_calls = std::max<Duration>(in_time, most / 16 * round_trip_);
    return std::min(once * (1U << doublings()), std::max(most_calls, most_prices * price()));
}

// Early excursions are cheap: the thread has few pages here that it needs there. If it is drawn by
// pages, those that it has here may be ones that it does not need again.
Gravity::Duration Gravity::price_of_pages() const {
    if (calls_ < cost_ - calls_) return {};
    return std::min<Duration>(2 * brought_ * wait_, most_time);
}

bool Gravity::pulls() const { return cost_ >= patience() + price_of_pages(); }

void Gravity::left(Clock::time_point now) {
    left_at_ = now;
    const Duration ran = std::max(now - arrived_at_ - waits_, round_trip_);
    rate_ = static_cast<double>(cost_.count()) / static_cast<double>(ran.count());
}

void Gravity::arrived(Clock::time_point now, uint32_t missed) {
    price_ = price();
    doublings_ = doublings();
    last_ = {};
    if (left_at_ != Clock::time_point{}) {
        const Duration away = now - left_at_;
        missed = std::min(missed, uint32_t{most_pages});  // a number from the other node
        brought_ -= std::min<uint64_t>(brought_, missed);
        const Duration waited = std::min(missed * wait_, away);
        shortest_ = std::min(shortest_, away - waited);
        const Duration crossing = std::min(shortest_, most_crossing * round_trip_);
        // Crossings vary, and what exceeds the shortest one is not yet time that the thread ran.
        const Duration ran = std::max(away - waited - 3 * crossing, Duration{});
        last_.cost = crossing + waited;
        last_.taken = taken_anyway + taken_for_each * missed;
        last_.worth = Duration(static_cast<int64_t>(rate_ * static_cast<double>(ran.count())));
    }
    left_at_ = {};
    arrived_at_ = now;
    cost_ = calls_ = waits_ = {};
    stalls_ = 0;
    missed_.clear();
}

}  // namespace gpr
