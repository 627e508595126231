// Pages that are sent along with a crossing thread, and how it is learned which.
#pragma once

#include <sys/user.h>

#include <cstdint>
#include <vector>

#include "base/address.h"
#include "base/task.h"
#include "mm/hot_sets.h"
#include "mm/page_protocol.h"
#include "monitor/paging/part.h"

namespace gpr::paging {

class HotPages {
public:
    HotPages(Core& core, Pager& pager) : core_(core), pager_(pager) {}

    // A thread leaves for another node with these registers: sends along the pages that it needed
    // there on earlier crossings from this place. Returns those that have not been sent yet: wait
    // for sent() before the thread is sent, or it arrives first and faults on them. alone: no other
    // thread of the program can touch this memory before somebody waits for Removals::removed(), so
    // the pages may be given away before they are removed from memory here.
    std::vector<PageKey> send_along(Fragment& fragment, Tid tid, const user_regs_struct& regs,
                                    NodeId to, bool alone);
    Task<void> sent(std::vector<PageKey> pages);
    // True while pages are sent along with the only thread here.
    [[nodiscard]] bool is_alone() const { return alone_; }

    // Whether a thread has to wait until this private page arrives from another node.
    [[nodiscard]] bool misses(const Mapping& mapping, Address at, bool write) const;
    // Whether it has been here before another node took it.
    [[nodiscard]] bool was_here(const Mapping& mapping, Address at) const;
    void note_missed(const Mapping& mapping, Address at, bool write, Tid tid);
    // The pages that the thread has missed here since it arrived, for the wire: page number << 1,
    // plus 1 for a write.
    std::vector<uint64_t> take_missed(Tid tid);
    // The thread comes back, and has missed these pages on the other node.
    void on_missed(Tid tid, const std::vector<uint64_t>& missed);
    void forget(Tid tid) { hot_.forget(tid); }

private:
    Core& core_;
    Pager& pager_;
    HotSets hot_;
    bool alone_ = false;
};

}  // namespace gpr::paging
