#include "monitor/paging/core.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "monitor/paging/pager.h"

namespace gpr::paging {

Core::Core(NodeId self_node, Loop& the_loop, PageDirectory* pages, Pager& pager)
    : self(self_node),
      loop(the_loop),
      directory(pages),
      agent(self_node),
      moved(the_loop),
      pager_(pager) {}

uint64_t Core::now() const {
    return static_cast<uint64_t>(Clock::now().time_since_epoch().count());
}

void Core::settle() {
    if (settling_) return;
    settling_ = true;
    for (;;) {
        agent.drain(actions_);
        if (actions_.empty() && directory) directory->drain(actions_);
        if (actions_.empty()) break;
        auto batch = std::move(actions_);
        actions_ = {};
        for (Action& action : batch) pager_.run(action);
    }
    settling_ = false;
    if (pager_.forks.any()) moved.notify_all();
    arm_timer();
}

void Core::arm_timer() {
    uint64_t due = agent.next_deadline();
    if (due == timer_due_) return;
    if (timer_ != 0) loop.cancel(timer_);
    timer_ = 0;
    timer_due_ = due;
    if (due == ~0ULL) return;
    uint64_t t = now();
    timer_ = loop.after(std::chrono::nanoseconds(due > t ? due - t : 0), [this] {
        timer_ = 0;
        timer_due_ = ~0ULL;
        agent.on_timer(now());
        settle();
    });
}

Fragment* Core::shower_of(ObjectId object) {
    auto known = shown_by_.find(object);
    if (known != shown_by_.end() && fragments.contains(known->second) &&
        known->second->space.shows(object)) {
        return known->second;
    }
    for (auto& [fragment, watch] : fragments) {
        if (fragment->space.shows(object)) return shown_by_[object] = fragment;
    }
    return nullptr;
}

std::optional<Place> Core::place_of(PageKey key) {
    Fragment* fragment = shower_of(key.object);
    if (!fragment) return std::nullopt;
    auto at = fragment->space.address_of(key);
    if (!at) return std::nullopt;
    return Place{fragment, *at, fragment->space.find(*at)};
}

std::vector<Piece> Core::pieces(const PageRun& run) {
    std::vector<Piece> found;
    for (uint32_t i = 0; i < run.count;) {
        const auto piece = piece_at(run, i);
        if (piece) found.push_back(*piece);
        i += piece ? piece->count : 1;
    }
    return found;
}

std::optional<Piece> Core::piece_at(const PageRun& run, uint32_t first) {
    auto p = place_of(run[first]);
    if (!p) return std::nullopt;
    const uint64_t left = (p->mapping->range.end - p->address) / page_size;
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(run.count - first, left));
    return Piece{p->fragment, p->mapping, p->address, first, count};
}

Result<void> Core::ensure_registered(Fragment& fragment, Mapping& mapping) {
    if (mapping.registered || mapping.backing == Backing::native_file) return {};
    GPR_CHECK(fragment.register_range(mapping.range));
    mapping.registered = true;
    return {};
}

void Core::answer(uint64_t cookie, bool result) {
    auto it = waiting.find(cookie);
    if (it != waiting.end()) it->second->set(result);
}

Task<bool> Core::wait_for(uint64_t cookie, OneShot<bool>& done) {
    bool result = co_await done;
    waiting.erase(cookie);
    co_return result;
}

}  // namespace gpr::paging
