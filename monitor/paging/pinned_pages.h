// Memory that devices have pinned. A device writes to the page frame, whatever the page table says.
// If the page were moved or copied the device would go on using the old frame, so it stays where it
// is. docs/decisions/0026-sockets-and-calls.md
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "base/address.h"
#include "base/task.h"
#include "mm/page_actions.h"
#include "monitor/paging/fragment.h"
#include "monitor/paging/part.h"

namespace gpr::paging {

class PinnedPages {
public:
    PinnedPages(Core& core, Pager& pager) : core_(core), pager_(pager) {}

    // Devices on this node may pin memory: a page that is to be shared is then moved out and put
    // back, which fails for a pinned one.
    void probe_for_pins() { probes_pins_ = true; }
    // Called when a thread here needs a page that is pinned at the node `anchor`. Without a handler
    // the request is repeated.
    using AskPinned = std::function<void(Fragment&, Address at, Tid tid, NodeId anchor)>;
    void on_pinned(AskPinned asks) { ask_pinned_ = std::move(asks); }
    void serve_later(Fragment& fragment, Address at, Tid tid);

    void on_anchored(const Anchored& action);
    [[nodiscard]] bool may_be_pinned(const Mapping& mapping, const Take& action) const;
    Task<Fragment::Taken> share_by_moving(uint64_t take, Piece piece);

private:
    Core& core_;
    Pager& pager_;
    AskPinned ask_pinned_;
    bool probes_pins_ = false;
};

}  // namespace gpr::paging
