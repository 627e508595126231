// Who wants pages on this node, since when, and what must not be taken from them yet.
//
// Actors want pages: threads, and acquires of the supervisor. An actor's pages are held against
// recalls so that it can finish its instruction (mm/README.md, "Progress"):
//  - A thread holds the page of its last fault until it progresses, faults elsewhere, or the hold
//    time is over. Most programs need no more.
//  - If it faults again on a page that it was granted and has lost, its instruction seems to need
//    several pages at once: it is *escalated*. It then holds all its recent pages: against every
//    younger requester while it waits for the rest, and for one hold time after the last one came.
//    An actor that waits gives way to an older requester at once; so the oldest never waits for one
//    that waits, and there are no cycles. The oldest completes, and then is no longer the oldest.
#pragma once

#include <array>
#include <unordered_map>
#include <vector>

#include "mm/agent_state.h"
#include "mm/busy_page.h"

namespace gpr {

struct PageActor {
    struct GroupPage {
        PageKey key;
        Access access = Access::read;
    };

    ActorId id = 0;
    Tid tid = 0;               // 0: an acquire
    uint64_t instruction = 0;  // when it changes, holds of the old instruction are void
    uint64_t age = 0;
    uint64_t grants = 0;  // pages granted for this instruction
    uint64_t last_grant_ns = 0;
    bool waiting = false;
    bool escalated = false;
    PageKey wait_key;
    // The last pages on which this instruction faulted. No instruction needs more at once than fit
    // here, so after as many new pages one must have finished, and the age is renewed.
    std::array<GroupPage, 32> group;
    uint32_t group_size = 0, group_next = 0, new_pages = 0;
    uint32_t in_row = 0;  // pages that came since it last lost one
    // For acquires:
    std::vector<PageRun> runs;
    Access access = Access::read;
    uint64_t cookie = 0;
    uint64_t missing = 0;
    bool hold_until_release = false;
    bool done = false;
};

class PageActors {
public:
    explicit PageActors(AgentState& agent) : agent_(agent) {}

    PageActor& thread(Tid tid);
    PageActor& begin_acquire();
    PageActor* find(ActorId id);
    void erase(ActorId id) { actors_.erase(id); }
    [[nodiscard]] size_t size() const { return actors_.size(); }

    void note_fault(PageActor& a, const Fault& fault, Presence presence);
    void end_instruction(PageActor& a);
    uint64_t held_until(const BusyPage& b, const BusyPage::Hold& h, const Seniority* by);
    uint64_t blocked_until(const BusyPage& b, const Seniority* by);
    void lose_holds(BusyPage& b, Presence left);

private:
    AgentState& agent_;
    std::unordered_map<ActorId, PageActor> actors_;
    uint64_t next_instruction_ = 1;
    uint64_t next_acquire_ = 1ULL << 32;  // smaller actor ids are tids
};

}  // namespace gpr
