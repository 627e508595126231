// Pages that cross with a thread, and what is learned for that.
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

    // A thread leaves for another node with these registers: what it needed there the last times
    // goes along. Gives the pages that have not been sent yet: wait for them before the thread
    // itself is sent, lest it comes first and misses them. alone: no other thread of the program
    // can touch the memory here before somebody waits for Removals::removed(); so copies that are
    // given up need not be gone yet when that is said.
    std::vector<PageKey> send_along(Fragment& fragment, Tid tid, const user_regs_struct& regs,
                                    NodeId to, bool alone);
    Task<void> sent(std::vector<PageKey> pages);
    // While pages go along with a thread that is the last one here.
    [[nodiscard]] bool is_alone() const { return alone_; }

    // A thread here has to wait for this private data until it comes from elsewhere.
    [[nodiscard]] bool misses(const Mapping& mapping, Address at, bool write) const;
    void note_missed(const Mapping& mapping, Address at, bool write, Tid tid);
    // What the thread missed here since it came, as it travels: page number << 1 | write. And what
    // it missed there, when it comes back.
    std::vector<uint64_t> take_missed(Tid tid);
    void on_missed(Tid tid, const std::vector<uint64_t>& missed);
    void forget(Tid tid) { hot_.forget(tid); }

private:
    Core& core_;
    Pager& pager_;
    HotSets hot_;
    bool alone_ = false;
};

}  // namespace gpr::paging
