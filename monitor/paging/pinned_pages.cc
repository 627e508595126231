#include "monitor/paging/pinned_pages.h"

#include <sys/mman.h>

#include <chrono>

#include "monitor/paging/pager.h"

namespace gpr::paging {

namespace {
// How soon a page is requested again. The directory itself asks the holder at growing intervals.
constexpr std::chrono::milliseconds tries_again_in{5};
}  // namespace

// Write-protecting and copying a page would not stop a device from writing to it.
bool PinnedPages::may_be_pinned(const Mapping& mapping, const Take& action) const {
    return probes_pins_ && action.leave == Presence::shared && action.had == Presence::exclusive &&
           mapping.backing == Backing::anonymous && !mapping.content &&
           (mapping.prot & PROT_WRITE) != 0;
}

// Moves the pages out and puts copies back; pinned ones cannot be moved. A thread that touches one
// meanwhile waits.
Task<Fragment::Taken> PinnedPages::share_by_moving(uint64_t take, Piece piece) {
    std::shared_ptr<Fragment> fragment = piece.fragment->shared_from_this();
    const PageKey first = piece.mapping->key(piece.address);
    Fragment::Taken got =
        co_await fragment->take(piece.address, piece.count, piece.mapping->prot, false);
    for (uint32_t i = 0; i < piece.count; i++) {
        if (got.results[i] != 1) continue;
        auto at = fragment->space.address_of(first + i);
        if (!at || !core_.agent.is_current(take, first + i)) continue;
        fragment->install(*at, {got.bytes.data() + i * page_size, page_size}, false);
    }
    co_return got;
}

void PinnedPages::on_anchored(const Anchored& action) {
    if (action.anchor == nowhere) pager_.absent.note_refused(action.tid, action.key);
    if (pager_.shared.contains(action.key.object)) return pager_.room.refuse(action);
    auto p = core_.place_of(action.key);
    if (!p) return;
    if (action.anchor == nowhere) {
        pager_.absent.refuse_page(*p->fragment, *p->mapping, p->address);
    } else if (ask_pinned_) {
        ask_pinned_(*p->fragment, p->address, action.tid, action.anchor);
    } else {
        serve_later(*p->fragment, p->address, action.tid);
    }
}

void PinnedPages::serve_later(Fragment& fragment, Address at, Tid tid) {
    core_.loop.after(tries_again_in, [this, weak = fragment.weak_from_this(), at, tid] {
        if (auto alive = weak.lock()) pager_.faults.serve(*alive, at, false, tid);
    });
}

}  // namespace gpr::paging
