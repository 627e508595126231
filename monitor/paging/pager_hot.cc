// Pages that cross with a thread, and what is learned for that.

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>

#include "base/log.h"
#include "monitor/paging/pager.h"

namespace gpr {

bool Pager::misses(const Mapping& mapping, Address at, bool write) const {
    if (mapping.trapped || mapping.anchored || is_shared(mapping.object)) return false;
    Presence here = agent_.presence(mapping.key(at));
    return here != Presence::exclusive && (here != Presence::shared || write);
}

void Pager::note_missed(const Mapping& mapping, Address at, bool write, Tid tid) {
    if (!misses(mapping, at, write)) return;
    hot_.on_fault(tid, {at.value / page_size, write ? Access::write : Access::read});
}

std::vector<PageKey> Pager::send_along(Fragment& fragment, Tid tid, const user_regs_struct& regs,
                                       NodeId to, bool alone) {
    std::vector<PageKey> pages;
    if (forking_.contains(&fragment)) return pages;
    for (const HotSets::Page& page : hot_.on_departure(tid, regs.rip, regs.rsp)) {
        Address at{page.number * page_size};
        const Mapping* m = fragment.space.find(at);
        if (!m || m->trapped || m->backing == Backing::native_file || is_shared(m->object)) {
            continue;
        }
        bool given = agent_.give_away(m->key(at), to, page.access, tid, now());
        spdlog::trace("along: tid {} {:#x} {} given {}", tid, at.value,
                      page.access == Access::write ? "write" : "read", given);
        if (given) pages.push_back(m->key(at));
    }
    if (pages.empty()) return pages;
    alone_ = alone;
    settle();
    alone_ = false;
    std::erase_if(pages, [this](PageKey key) { return !agent_.is_leaving(key); });
    return pages;
}

Task<void> Pager::sent(std::vector<PageKey> pages) {
    while (std::any_of(pages.begin(), pages.end(),
                       [this](PageKey key) { return agent_.is_leaving(key); })) {
        co_await moved_.wait();
    }
}

// Gives up copies that nobody can look at until they are gone: what they are is known before.
bool Pager::take_early(const Take& action) {
    if (action.had != Presence::shared || action.leave != Presence::none) return false;
    auto found = pieces(action.run);
    if (found.size() != 1 || found[0].count != action.run.count) return false;
    const Piece& p = found[0];
    if (p.mapping->trapped || p.mapping->backing == Backing::native_file || p.mapping->content) {
        return false;
    }
    Fragment::Taken got = p.fragment->peek(p.address, p.count);
    auto block = std::make_shared<RawBytes>(std::move(got.bytes));
    std::vector<TakeResult> results(p.count);
    for (uint32_t i = 0; i < p.count; i++) {
        results[i].kind = got.results[i] == 1 ? Taken::data : Taken::zero;
        if (got.results[i] == 1) results[i].bytes = {block, block->data() + i * page_size};
    }
    removing_.push_back(action.run);
    loop_.post([this, weak = p.fragment->weak_from_this(), at = p.address, run = action.run] {
        spawn(remove(weak, at, run));
    });
    agent_.on_taken(action.id, std::move(results), now());
    return true;
}

// The executor changes the address space: held, so that the page removed is still the one meant.
Task<void> Pager::remove(std::weak_ptr<Fragment> weak, Address at, PageRun run) {
    auto fragment = weak.lock();
    if (fragment && fragment->has_helpers()) {
        auto executor = co_await fragment->executor().lock();
        auto puncher = co_await fragment->puncher().lock();
        auto seen = fragment->space.address_of(run[0]);
        if (seen && *seen == at) {
            std::vector<Call> calls{
                Call{SYS_madvise, {at.value, run.count * page_size, MADV_DONTNEED}, 0}};
            co_await fragment->puncher().run_locked(calls);
        }
    }
    auto listed = std::find(removing_.begin(), removing_.end(), run);
    if (listed != removing_.end()) removing_.erase(listed);
    moved_.notify_all();
}

Task<void> Pager::removed() {
    while (!removing_.empty()) co_await moved_.wait();
}

bool Pager::is_being_removed(const PageRun& run) const {
    return std::any_of(removing_.begin(), removing_.end(), [&](const PageRun& r) {
        return r.object == run.object && r.first < run.first + run.count &&
               run.first < r.first + r.count;
    });
}

Task<void> Pager::install_later(Install action) {
    while (is_being_removed(action.run)) co_await moved_.wait();
    run(action);
    settle();
}

void Pager::on_thread_end(Tid tid) {
    hot_.forget(tid);
    on_thread_gone(tid);
}

std::vector<uint64_t> Pager::take_missed(Tid tid) {
    std::vector<uint64_t> missed;
    for (const HotSets::Page& page : hot_.take_missed(tid)) {
        missed.push_back(page.number << 1 | (page.access == Access::write ? 1 : 0));
    }
    return missed;
}

void Pager::on_missed(Tid tid, const std::vector<uint64_t>& missed) {
    std::vector<HotSets::Page> pages;
    for (uint64_t m : missed) {
        if (pages.size() == HotSets::most_pages) break;
        pages.push_back({m >> 1, m & 1 ? Access::write : Access::read});
    }
    hot_.on_missed(tid, pages);
}

}  // namespace gpr
