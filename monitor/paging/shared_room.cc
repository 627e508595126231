#include "monitor/paging/shared_room.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "monitor/paging/pager.h"

namespace gpr::paging {

namespace {
// Long enough for the waiting thread to get onto its CPU.
constexpr std::chrono::milliseconds poisoned_for{2};
}  // namespace

Task<void> SharedRoom::install_when_settled(Install action) {
    co_await pager_.views.settled();
    for (const Install& part : pager_.installs.current_parts(action)) {
        if (pager_.shared.contains(part.run.object)) pager_.shared.install(part);
    }
    core_.agent.on_installed(action.id, core_.now());
    core_.settle();
}

bool SharedRoom::may_take_now(const Take& action) const {
    const ObjectId object = action.run.object;
    bool gives = action.leave == Presence::none;
    return pager_.shared.memfd(object) >= 0 ||
           (!pager_.views.is_changing() && !(gives && pager_.shared.may_lack_room(object)));
}

Task<void> SharedRoom::take_when_settled(Take action) {
    co_await pager_.views.settled();
    std::vector<bool> lacking(action.run.count, false);
    bool may_lack = pager_.shared.may_lack_room(action.run.object);
    if (may_lack && action.leave == Presence::none) lacking = co_await make_room(action.run);
    std::vector<TakeResult> results(action.run.count);
    if (pager_.shared.contains(action.run.object)) results = pager_.shared.take(action);
    for (uint32_t i = 0; i < action.run.count; i++) {
        if (lacking[i]) results[i] = {Taken::absent, nullptr};
    }
    core_.agent.on_taken(action.id, std::move(results), core_.now());
    core_.settle();
    // No node keeps a copy of a page that has no room: a readable copy would prevent us from
    // refusing the write.
    for (uint32_t i = 0; i < action.run.count; i++) {
        if (!lacking[i] || action.want_data || !pager_.shared.contains(action.run.object)) continue;
        core_.directory->collect(action.run.object, action.run.first + i, 1, core_.self,
                                 Access::write, core_.next_cookie++, core_.now());
    }
    core_.settle();
}

// Allocates the pages as if each were written here. Returns which could not be allocated.
Task<std::vector<bool>> SharedRoom::make_room(PageRun run) {
    struct Part {
        std::shared_ptr<Fragment> fragment;
        Range range;
        uint64_t first;
    };
    std::vector<Part> parts;
    const uint64_t end = pager_.shared.pages(run.object);
    pager_.views.for_each(
        run, [&](Fragment& fragment, const Mapping& m, Range range, uint64_t page) {
            uint64_t pages = std::min(page + range.size() / page_size, std::max(end, page)) - page;
            bool writes = (m.prot & PROT_WRITE) && fragment.has_helpers();
            range.end = range.begin + pages * page_size;
            if (writes && pages > 0) parts.push_back({fragment.shared_from_this(), range, page});
        });
    std::vector<bool> lacking(run.count, false), made(run.count, false);
    for (const Part& part : parts) {
        auto fill = [&part](Range range) {
            return part.fragment->page_mover().call(SYS_madvise, range.begin.value, range.size(),
                                                    MADV_POPULATE_WRITE);
        };
        uint64_t pages = part.range.size() / page_size, first = part.first - run.first;
        auto begin = made.begin() + static_cast<ptrdiff_t>(first);
        auto made_all = begin + static_cast<ptrdiff_t>(pages);
        if (std::find(begin, made_all, false) == made_all) continue;
        bool all_here = co_await fill(part.range) != -EFAULT;
        for (uint64_t i = 0; i < pages; i++) {
            Address at = part.range.begin + i * page_size;
            bool here = all_here;
            if (!here) here = co_await fill({at, at + page_size}) != -EFAULT;
            made[first + i] = made[first + i] || here;
            lacking[first + i] = !made[first + i];
        }
    }
    co_return lacking;
}

// Poisons the page, like one beyond the end of a file (absent_pages.h). If this node still has a
// read-only copy, which is being recalled, the thread is only woken and faults again.
void SharedRoom::refuse(const Anchored& action) {
    const PageRun run{action.key.object, action.key.index, 1};
    if (core_.agent.presence(action.key) != Presence::none) return pager_.views.wake(run);
    bool again = pager_.removals.is_being_removed(run);
    if (!again) pager_.removals.add(run);
    pager_.views.for_each(run, [](Fragment& fragment, const Mapping& m, Range range, uint64_t) {
        if (m.registered) fragment.poison(range.begin);
    });
    if (!again) core_.loop.after(poisoned_for, [this, run] { spawn(remove_refusal(run)); });
}

// Nothing is installed until the write-protect marks are set again.
Task<void> SharedRoom::remove_refusal(PageRun run) {
    if (!pager_.removals.is_being_removed(run)) co_return;
    std::vector<std::pair<std::shared_ptr<Fragment>, Address>> views;
    pager_.views.for_each(run, [&](Fragment& fragment, const Mapping& m, Range range, uint64_t) {
        bool can = m.registered && fragment.has_helpers();
        if (can) views.emplace_back(fragment.shared_from_this(), range.begin);
    });
    for (auto& [fragment, at] : views) {
        auto executor = co_await fragment->executor().lock();
        auto page_mover = co_await fragment->page_mover().lock();
        const Mapping* m = fragment->space.find(at);
        if (!m || m->key(at) != run[0]) continue;
        std::vector<Call> calls{Call{SYS_madvise, {at.value, page_size, MADV_DONTNEED}, 0}};
        co_await fragment->page_mover().run_locked(calls);
    }
    pager_.views.protect(run);
    pager_.removals.done(run);
}

}  // namespace gpr::paging
