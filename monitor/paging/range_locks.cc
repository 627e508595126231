#include "monitor/paging/range_locks.h"

#include <algorithm>
#include <utility>

#include "monitor/paging/core.h"
#include "monitor/paging/fragment.h"

namespace gpr::paging {

namespace {

Range range_of(const Piece& piece) {
    return {piece.address, piece.address + piece.count * page_size};
}

}  // namespace

RangeLocks::Guard::Guard(Guard&& o) noexcept
    : locks_(std::exchange(o.locks_, nullptr)), id_(o.id_) {}

RangeLocks::Guard& RangeLocks::Guard::operator=(Guard&& o) noexcept {
    release();
    locks_ = std::exchange(o.locks_, nullptr);
    id_ = o.id_;
    return *this;
}

void RangeLocks::Guard::release() {
    RangeLocks* locks = std::exchange(locks_, nullptr);
    if (!locks) return;
    locks->held_.erase(id_);
    locks->core_.moved.notify_all();
}

// Locked first, so that those who keep moving pages cannot delay the change for ever.
Task<RangeLocks::Guard> RangeLocks::lock(std::shared_ptr<Fragment> fragment,
                                         std::vector<Range> ranges) {
    std::erase_if(ranges, [](const Range& range) { return range.begin >= range.end; });
    if (ranges.empty()) co_return Guard();
    const uint64_t id = next_id_++;
    held_[id] = {fragment, ranges, true};
    Guard guard(this, id);
    while (is_held(*fragment, ranges, false)) co_await core_.moved.wait();
    co_return guard;
}

Task<RangeLocks::Guard> RangeLocks::lock(std::shared_ptr<Fragment> fragment, Range range) {
    return lock(std::move(fragment), std::vector{range});
}

RangeLocks::Guard RangeLocks::share(const Piece& piece) {
    const uint64_t id = next_id_++;
    held_[id] = {piece.fragment->shared_from_this(), {range_of(piece)}, false};
    return {this, id};
}

bool RangeLocks::is_locked(const Piece& piece) const {
    return !held_.empty() && is_held(*piece.fragment, {range_of(piece)}, true);
}

bool RangeLocks::is_locked(const PageRun& run) const {
    return std::ranges::any_of(held_, [&](const auto& entry) {
        const Held& held = entry.second;
        bool shown = false;
        if (!held.alone) return false;
        held.fragment->space.views(run.object, run.first, run.first + run.count,
                                   [&](const Mapping& m) {
                                       for (const Range& range : held.ranges) {
                                           shown = shown || m.range.overlaps(range);
                                       }
                                   });
        return shown;
    });
}

bool RangeLocks::is_held(const Fragment& fragment, const std::vector<Range>& ranges,
                         bool alone) const {
    return std::ranges::any_of(held_, [&](const auto& entry) {
        const Held& held = entry.second;
        if (held.fragment.get() != &fragment || held.alone != alone) return false;
        return std::ranges::any_of(ranges, [&](const Range& range) {
            return std::ranges::any_of(held.ranges,
                                       [&](const Range& r) { return r.overlaps(range); });
        });
    });
}

}  // namespace gpr::paging
