#include "monitor/paging/unfilled_pages.h"

#include <cerrno>
#include <iterator>

#include "base/log.h"
#include "monitor/paging/pager.h"

namespace gpr::paging {

UnfilledPages::UnfilledPages(Core& core, Pager& pager)
    : core_(core), pager_(pager), filled_(core.loop) {}

void UnfilledPages::forget(Fragment& fragment) {
    std::erase_if(unfilled_, [&](const auto& wish) { return wish.first.first == &fragment; });
}

// Whether the page is held here, is empty, and shall be filled by the program.
bool UnfilledPages::is_unfilled(Fragment& fragment, const Mapping& m, Address at) const {
    std::byte probe;
    PageKey key = m.key(at);
    return m.program_fills && core_.agent.presence(key) == Presence::exclusive &&
           !core_.agent.in_motion(key) && fragment.memory().read(at, &probe, 1) != 1;
}

// A thread of this node waits for the page.
void UnfilledPages::note_unfilled(Fragment& fragment, Address at, bool write, Tid tid) {
    unfilled_[{&fragment, at}] = {tid, write};
}

// The page is held here now: asks the program to fill it, if a thread waits for it.
void UnfilledPages::tell_unfilled(Fragment& fragment, Address at) {
    auto wish = unfilled_.find({&fragment, at});
    if (wish == unfilled_.end()) return;
    auto [tid, write] = wish->second;
    unfilled_.erase(wish);
    spdlog::trace("unfilled: tid {} {:#x} {}", tid, at.value, write ? "write" : "read");
    if (ask_program_) ask_program_(fragment, at, write, tid);
}

// Waits for the program to fill a page that the supervisor needs. False if it is no longer mapped.
Task<bool> UnfilledPages::wait_for_program(std::shared_ptr<Fragment> fragment, Address at,
                                           bool write) {
    note_unfilled(*fragment, at, write, 0);
    tell_unfilled(*fragment, at);
    co_await filled_.wait();
    co_return fragment->space.find(at) != nullptr;
}

void UnfilledPages::wake_unfilled(Fragment& fragment, Range range) {
    for (auto it = unfilled_.begin(); it != unfilled_.end();) {
        bool of_range = it->first.first == &fragment && range.contains(it->first.second);
        it = of_range ? unfilled_.erase(it) : std::next(it);
    }
    fragment.wake(range);
    filled_.notify_all();
}

void UnfilledPages::let_program_fill(Fragment& fragment, Range range, bool fills) {
    fragment.space.for_each(range, [&](Mapping& m) {
        m.program_fills = fills;
        if (fills && !core_.ensure_registered(fragment, m)) m.program_fills = false;
    });
    if (!fills) wake_unfilled(fragment, range);
}

// Node 0. Returns 0 or an errno.
Task<int> UnfilledPages::fill(std::shared_ptr<Fragment> fragment, Address at,
                              std::span<const std::byte> page) {
    for (;;) {
        Mapping* m = fragment->space.find(at);
        if (!m || !m->program_fills) co_return ENOENT;
        bool here = co_await pager_.supply.acquire(*fragment, {at, at + page_size}, Access::write);
        m = fragment->space.find(at);
        if (!here || !m || !m->program_fills) co_return ENOENT;
        PageKey key = m->key(at);
        if (core_.agent.presence(key) != Presence::exclusive || core_.agent.in_motion(key))
            continue;
        if (!is_unfilled(*fragment, *m, at)) co_return EEXIST;
        fragment->install(at, page, true);
        co_return 0;
    }
}

}  // namespace gpr::paging
