// Memory that devices have pinned. They write to the page frame itself, whatever the page table
// says, so a page that left for elsewhere, or was copied, would be another one than theirs.
// docs/decisions/0026-sockets-and-calls.md

#include <sys/mman.h>

#include "base/log.h"
#include "monitor/paging/pager.h"

namespace gpr {

namespace {
// A page is asked for again. The directory itself asks its holder less and less often.
constexpr std::chrono::milliseconds tries_again_in{5};
}  // namespace

// To protect a page from writing, and to copy it, does not keep a device from writing on.
bool Pager::may_be_pinned(const Mapping& mapping, const Take& action) const {
    return probes_pins_ && action.leave == Presence::shared && action.had == Presence::exclusive &&
           mapping.backing == Backing::anonymous && !mapping.content &&
           (mapping.prot & PROT_WRITE) != 0;
}

// Taken and put back, but for pages that cannot be taken. Who touches one meanwhile waits for it.
Task<Fragment::Taken> Pager::share_by_moving(uint64_t take, Piece piece) {
    std::shared_ptr<Fragment> fragment = piece.fragment->shared_from_this();
    const PageKey first = piece.mapping->key(piece.address);
    Fragment::Taken got =
        co_await fragment->take(piece.address, piece.count, piece.mapping->prot, false);
    for (uint32_t i = 0; i < piece.count; i++) {
        if (got.results[i] != 1) continue;
        auto at = fragment->space.address_of(first + i);
        if (!at || !agent_.is_current(take, first + i)) continue;
        fragment->install(*at, {got.bytes.data() + i * page_size, page_size}, false);
    }
    co_return got;
}

void Pager::run(const Anchored& action) {
    if (action.anchor == nowhere) refused_[action.tid] = action.key;
    if (is_shared(action.key.object)) return refuse_shared(action);
    for (const Place& p : places(action.key)) {
        if (action.anchor == nowhere) {
            refuse_page(*p.fragment, *p.mapping, p.address);
        } else if (ask_pinned_) {
            ask_pinned_(*p.fragment, p.address, action.tid);
        } else {
            serve_later(*p.fragment, p.address, action.tid);
        }
    }
}

void Pager::serve_later(Fragment& fragment, Address at, Tid tid) {
    loop_.after(tries_again_in, [this, weak = fragment.weak_from_this(), at, tid] {
        if (auto alive = weak.lock()) serve(*alive, at, false, tid);
    });
}

}  // namespace gpr
