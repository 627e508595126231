// Pages of shared memory that home cannot give. What it has of an object its own mappings show, and
// they show nothing while they are being moved. And what the acceptor writes must have a place: a
// file system without room for a page says so here, as natively, before somebody writes it.

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "monitor/paging/pager.h"

namespace gpr {

namespace {
// The thread that waits for it has to get onto its CPU.
constexpr std::chrono::milliseconds poisoned_for{2};
constexpr std::chrono::microseconds looks_again_in{100};
constexpr std::chrono::seconds told_after{2};
}  // namespace

Pager::ViewChange Pager::change_views(const AddressSpace& space, std::span<const Range> ranges) {
    bool any = false;
    for (Range range : ranges) {
        space.overlapping(range, [&](const Mapping& m) { any = any || m.shared; });
    }
    return ViewChange(any ? this : nullptr);
}

Task<void> Pager::views_settled() {
    const auto told_at = Clock::now() + told_after;
    for (bool told = false; views_changing_ > 0;) {
        co_await loop_.sleep(looks_again_in);
        if (told || Clock::now() < told_at) continue;
        told = true;
        spdlog::warn("pages of shared memory wait for a change of mappings, which goes on");
    }
}

Task<void> Pager::install_when_settled(Install action) {
    co_await views_settled();
    if (is_shared(action.run.object)) install_shared(action);
    agent_.on_installed(action.id, now());
    settle();
}

bool Pager::may_take_now(const Take& action) const {
    const Shared& o = shared_.at(action.run.object);
    bool gives = action.leave == Presence::none;
    return o.memfd || (views_changing_ == 0 && !(gives && o.may_lack_room));
}

Task<void> Pager::take_when_settled(Take action) {
    co_await views_settled();
    std::vector<bool> lacking(action.run.count, false);
    auto object = shared_.find(action.run.object);
    bool may_lack = object != shared_.end() && object->second.may_lack_room;
    if (may_lack && action.leave == Presence::none) lacking = co_await make_room(action.run);
    std::vector<TakeResult> results(action.run.count);
    if (is_shared(action.run.object)) results = take_shared(action);
    for (uint32_t i = 0; i < action.run.count; i++) {
        if (lacking[i]) results[i] = {Taken::absent, nullptr};
    }
    agent_.on_taken(action.id, std::move(results), now());
    settle();
    // Where a page has no room nobody has a copy: one that may be read would be in the way of
    // saying that it must not be written.
    for (uint32_t i = 0; i < action.run.count; i++) {
        if (!lacking[i] || action.want_data || !is_shared(action.run.object)) continue;
        directory_->collect(action.run.object, action.run.first + i, 1, self_, Access::write,
                            next_cookie_++, now());
    }
    settle();
}

// As if each page were written here. Gives which could not.
Task<std::vector<bool>> Pager::make_room(PageRun run) {
    struct Part {
        std::shared_ptr<Fragment> fragment;
        Range range;
        uint64_t first;
    };
    std::vector<Part> parts;
    const uint64_t end = shared_.at(run.object).pages;
    for_each_view(run, [&](Fragment& fragment, const Mapping& m, Range range, uint64_t page) {
        uint64_t pages = std::min(page + range.size() / page_size, std::max(end, page)) - page;
        bool writes = (m.prot & PROT_WRITE) && fragment.has_helpers();
        range.end = range.begin + pages * page_size;
        if (writes && pages > 0) parts.push_back({fragment.shared_from_this(), range, page});
    });
    std::vector<bool> lacking(run.count, false), made(run.count, false);
    for (const Part& part : parts) {
        auto fill = [&part](Range range) {
            return part.fragment->puncher().call(SYS_madvise, range.begin.value, range.size(),
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

// As one beyond the end of a file (pager_absent.cc). A copy that was only for reading is on its way
// back: until it has gone the thread asks again.
void Pager::refuse_shared(const Anchored& action) {
    const PageRun run{action.key.object, action.key.index, 1};
    if (agent_.presence(action.key) != Presence::none) return wake_views(run);
    bool again = is_being_removed(run);
    if (!again) removing_.push_back(run);
    for_each_view(run, [](Fragment& fragment, const Mapping& m, Range range, uint64_t) {
        if (m.registered) fragment.poison(range.begin);
    });
    if (!again) loop_.after(poisoned_for, [this, run] { spawn(remove_refusal(run)); });
}

// Until the marks are there again nothing is installed.
Task<void> Pager::remove_refusal(PageRun run) {
    if (!is_being_removed(run)) co_return;
    std::vector<std::pair<std::shared_ptr<Fragment>, Address>> views;
    for_each_view(run, [&](Fragment& fragment, const Mapping& m, Range range, uint64_t) {
        bool can = m.registered && fragment.has_helpers();
        if (can) views.emplace_back(fragment.shared_from_this(), range.begin);
    });
    for (auto& [fragment, at] : views) {
        auto executor = co_await fragment->executor().lock();
        auto puncher = co_await fragment->puncher().lock();
        const Mapping* m = fragment->space.find(at);
        if (!m || m->key(at) != run[0]) continue;
        std::vector<Call> calls{Call{SYS_madvise, {at.value, page_size, MADV_DONTNEED}, 0}};
        co_await fragment->puncher().run_locked(calls);
    }
    protect_views(run);
    auto listed = std::find(removing_.begin(), removing_.end(), run);
    if (listed != removing_.end()) removing_.erase(listed);
    moved_.notify_all();
}

}  // namespace gpr
