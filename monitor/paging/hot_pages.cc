#include "monitor/paging/hot_pages.h"

#include <algorithm>

#include "base/log.h"
#include "monitor/paging/pager.h"

namespace gpr::paging {

namespace {

// Whether the page still shows its file. A copy that is sent unasked would not show what is written
// to the file before the program looks, above all where the file ended before the page.
bool shows_file(NodeId self, Fragment& fragment, const Mapping& mapping, Address at) {
    return mapping.file && mapping.birth == self &&
           fragment.private_copies({at, at + page_size}).empty();
}

}  // namespace

bool HotPages::misses(const Mapping& mapping, Address at, bool write) const {
    if (mapping.trapped || mapping.anchored || pager_.shared.contains(mapping.object)) return false;
    Presence here = core_.agent.presence(mapping.key(at));
    return here != Presence::exclusive && (here != Presence::shared || write);
}

bool HotPages::was_here(const Mapping& mapping, Address at) const {
    return core_.agent.was_here(mapping.key(at));
}

void HotPages::note_missed(const Mapping& mapping, Address at, bool write, Tid tid) {
    if (!misses(mapping, at, write)) return;
    hot_.on_fault(tid, {at.value / page_size, write ? Access::write : Access::read});
}

std::vector<PageKey> HotPages::send_along(Fragment& fragment, Tid tid, const user_regs_struct& regs,
                                          NodeId to, bool alone) {
    std::vector<PageKey> pages;
    if (pager_.forks.is_forking(fragment)) return pages;
    for (const HotSets::Page& page : hot_.on_departure(tid, regs.rip, regs.rsp)) {
        Address at{page.number * page_size};
        const Mapping* m = fragment.space.find(at);
        if (!m || m->trapped || m->backing == Backing::native_file ||
            pager_.shared.contains(m->object) || shows_file(core_.self, fragment, *m, at)) {
            continue;
        }
        bool given = core_.agent.give_away(m->key(at), to, page.access, tid, core_.now());
        spdlog::trace("along: tid {} {:#x} {} given {}", tid, at.value,
                      page.access == Access::write ? "write" : "read", given);
        if (given) pages.push_back(m->key(at));
    }
    if (pages.empty()) return pages;
    alone_ = alone;
    core_.settle();
    alone_ = false;
    std::erase_if(pages, [this](PageKey key) { return !core_.agent.is_leaving(key); });
    return pages;
}

Task<void> HotPages::sent(std::vector<PageKey> pages) {
    while (std::any_of(pages.begin(), pages.end(),
                       [this](PageKey key) { return core_.agent.is_leaving(key); })) {
        co_await core_.moved.wait();
    }
}

std::vector<uint64_t> HotPages::take_missed(Tid tid) {
    std::vector<uint64_t> missed;
    for (const HotSets::Page& page : hot_.take_missed(tid)) {
        missed.push_back(page.number << 1 | (page.access == Access::write ? 1 : 0));
    }
    return missed;
}

void HotPages::on_missed(Tid tid, const std::vector<uint64_t>& missed) {
    std::vector<HotSets::Page> pages;
    for (uint64_t m : missed) {
        if (pages.size() == HotSets::most_pages) break;
        pages.push_back({m >> 1, m & 1 ? Access::write : Access::read});
    }
    hot_.on_missed(tid, pages);
}

}  // namespace gpr::paging
