#include "mm/fault_trails.h"

#include <algorithm>

namespace gpr {

const std::vector<FaultTrails::Page>& FaultTrails::on_fault(Tid tid, const Page& page,
                                                            const Test& is_missing) {
    asked_.clear();
    if (steps_of_all_ > most_steps_of_all) {
        trails_.clear();
        steps_of_all_ = 0;
    }
    Trail& trail = trails_[tid];
    const uint64_t until = trail.end;
    auto known = trail.last.find(page.key);
    if (known == trail.last.end()) {
        append(trail, {page});
        return asked_;
    }
    const uint64_t at = known->second;
    Step step = trail.at(at);
    // It was left out, and missed: it is needed.
    if (step.unproved >= step.most_unproved) {
        step.most_unproved = std::min(2 * step.most_unproved, last_probe);
    }
    step.unproved = 0;
    step.page = page;
    // Asked for just now, and not here yet.
    if (at >= trail.batch && at < trail.batch_end) {
        append(trail, step);
        return asked_;
    }
    if (trail.batch != trail.batch_end) {
        const bool right = at >= trail.asked_until && at - trail.asked_until <= near;
        trail.depth = right ? std::min(2 * trail.depth, most_depth) : std::max(trail.depth / 2, 1U);
    }
    append(trail, step);
    ask(trail, at + 1, until, is_missing);
    return asked_;
}

void FaultTrails::forget(Tid tid) {
    auto it = trails_.find(tid);
    if (it == trails_.end()) return;
    steps_of_all_ -= it->second.steps.size();
    trails_.erase(it);
}

void FaultTrails::ask(Trail& trail, uint64_t from, uint64_t until, const Test& is_missing) {
    uint64_t position = from;
    uint32_t present = 0;
    trail.batch = trail.end;
    for (; position < until && asked_.size() < trail.depth && present < most_present; ++position) {
        if (!trail.holds(position)) continue;
        Step step = trail.at(position);
        auto last = trail.last.find(step.page.key);
        if (last == trail.last.end() || last->second != position) continue;  // a later step has it
        if (step.unproved >= step.most_unproved) continue;
        if (!is_missing(step.page)) {
            ++present;
            continue;
        }
        ++step.unproved;
        asked_.push_back(step.page);
        append(trail, step);
    }
    trail.batch_end = trail.end;
    trail.asked_until = position;
}

void FaultTrails::append(Trail& trail, Step step) {
    const uint64_t size = trail.steps.size();
    if (trail.end == size && size < most_steps) {
        trail.steps.resize(size == 0 ? least_steps : 2 * size);
        steps_of_all_ += trail.steps.size() - size;
    } else if (trail.end >= size) {
        auto old = trail.last.find(trail.at(trail.end).page.key);
        if (old != trail.last.end() && old->second + size == trail.end) trail.last.erase(old);
    }
    trail.last[step.page.key] = trail.end;
    trail.at(trail.end++) = step;
}

}  // namespace gpr
