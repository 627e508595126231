// The inside of PageAgent: what it remembers. Only page_agent*.cc include it.
//
// A page has an eight-byte entry; everything that goes on about it (waiters, holds, a recall, an
// operation the glue performs) is in a Busy beside, which exists only while something does.
// settle() looks at one page and does what can be done now; every event ends there.
//
// Actors want pages: threads, and acquires of the supervisor. An actor's pages are held against
// recalls so that it can finish its instruction (DESIGN 4.1 "Progress"):
//  - A thread holds the page of its last fault until it progressed, faulted elsewhere or the hold
//    time passed. Most programs need no more.
//  - If it faults again on a page that it was granted and lost meanwhile, its instruction seems to
//    need several pages at once: it is *escalated*. It then holds all its recent pages, while it
//    waits for the rest against every younger requester, and for one hold time after the last
//    came. Who waits gives way to an older requester at once; so the oldest never waits for a
//    waiting one, and nobody waits in a circle. The oldest completes, then is no longer the oldest.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "mm/page_agent.h"
#include "mm/page_outbox.h"
#include "mm/page_table.h"

namespace gpr {

inline constexpr uint64_t never = UINT64_MAX;
inline constexpr uint64_t busy_bit = 4;  // of an entry, see page_agent_pages.cc

struct PageAgent::Core {
    using ActorId = uint64_t;

    struct GroupPage {
        PageKey key;
        Access access = Access::read;
    };

    struct Actor {
        ActorId id = 0;
        Tid tid = 0;               // 0: an acquire
        uint64_t instruction = 0;  // new number: holds of the old one are void
        uint64_t age = 0;
        uint64_t grants = 0;  // pages that came for this instruction
        uint64_t last_grant_ns = 0;
        bool waiting = false;
        bool escalated = false;
        PageKey wait_key;
        // The last pages this instruction faulted on. No instruction needs more at once than
        // fit, so after as many new ones an older one must have finished: the age is renewed.
        std::array<GroupPage, 32> group;
        uint32_t group_size = 0, group_next = 0, new_pages = 0;
        uint32_t in_row = 0;  // pages that came since one was lost
        // Acquires
        std::vector<PageRun> runs;
        Access access = Access::read;
        uint64_t cookie = 0;
        uint64_t missing = 0;
        bool hold_until_release = false;
        bool done = false;
    };

    struct Waiter {
        ActorId actor;
        Access access;
        bool late = false;  // came when an install was under way, which may not wake it
    };
    struct Hold {
        ActorId actor;
        uint64_t instruction;
        uint64_t grant;  // the actor's grant number
        Access access;
    };
    struct PageRecall {
        Epoch epoch = 0;
        Presence leave = Presence::none;
        bool want_data = false, optional = false;
        uint32_t round = 0;
        Seniority for_whom;
    };
    struct PageGrant {
        Epoch epoch = 0;
        Presence presence = Presence::none;
        Tid tid = 0;
        uint32_t collect = 0;
        PageContent content;
    };
    struct PagePush {
        NodeId to = 0;
        Tid tid = 0;
        Access access = Access::read;
    };
    enum class Operation : uint8_t { none, install, take };

    struct Busy {
        PageKey key;
        std::vector<Waiter> waiters;
        std::vector<Hold> holds;
        bool hold_queued = false;  // in expiring_
        bool deferred = false;     // in deferred_
        bool requested = false;
        Access requested_access = Access::read;
        uint64_t requested_age = 0;
        Operation operation = Operation::none;
        bool dropped = false;  // since the operation began: its result is of an old life
        uint64_t operation_id = 0;
        PageRecall taking;                // what the take answers, or
        std::optional<PagePush> pushing;  // for whom it is
        Tid install_tid = 0;
        uint32_t install_collect = 0;
        std::optional<PageRecall> recall;  // not answered yet
        // The recall that was answered with "pinned" or "absent": unlike any other answer that
        // changes nothing here, so a repetition of the recall must be told from a new one.
        std::optional<uint32_t> pinned_round;
        std::vector<PageGrant> grants;  // not applied yet
        bool kept = false;              // a marker: the grant waits until anybody wants the page
        // A shared copy that was given up unasked, in the era that the entry has. The directory
        // may not know yet, or not want to: until the next era the content is answerable from here.
        std::optional<PageContent> withdrawn;

        void recycle() {
            Busy fresh;
            fresh.waiters.swap(waiters);
            fresh.holds.swap(holds);
            fresh.grants.swap(grants);
            *this = std::move(fresh);
            waiters.clear();
            holds.clear();
            grants.clear();
        }
    };

    struct Object {
        PageTable table;
        NodeId birth = 0;
    };
    struct State {
        Presence presence = Presence::none;
        Epoch epoch = 0;
        bool untouched = false;
    };
    struct Deferred {
        PageKey key;
        uint64_t retry_ns;
    };

    NodeId self = 0;
    AgentOptions options;
    AgentStats stats;
    Outbox out;
    uint64_t now = 0;
    uint64_t clock = 0;
    std::unordered_map<ObjectId, Object> objects;
    PageMap<Busy> busy;
    std::unordered_map<ActorId, Actor> actors;
    std::unordered_map<uint64_t, ActorId> acquires;  // by cookie, unfinished or held
    std::unordered_map<uint64_t, PageRun> operations;
    uint64_t next_operation = 1;
    std::unordered_map<uint64_t, Census> censuses;  // under way, by the operation's number
    uint64_t pushed = 0;                            // pages, so far
    uint64_t next_instruction = 1;
    uint64_t next_acquire = 1ULL << 32;  // actor ids below are tids
    std::deque<std::pair<uint64_t, PageKey>> expiring;
    std::deque<std::pair<uint64_t, ActorId>> finished;  // acquires in their last hold time
    std::vector<Deferred> deferred;
    bool recheck_deferred = false;
    uint32_t ahead = 0;  // wanted beyond the page that settle() is called for
    ReadAhead read_ahead;
    std::unordered_set<PageKey, PageKeyHash> markers;  // asked for, or kept
    std::deque<PageKey> marker_order;
    bool may_keep = true;
    size_t withdrawn_pages = 0;

    // --- page_agent.cc ---
    void begin(uint64_t now_ns);
    void end();
    void handle(Grant& grant);
    void handle(const Recall& recall);
    void handle(const Refused& refused);
    void handle(const Census& census);
    void tell_touched(const Census& census, uint64_t looked, std::vector<PageSpan> touched);
    void refuse_waiters(Busy& b, NodeId anchor);
    void drop_pages(Object& o, const std::vector<PageKey>& keys);
    void forget_object(ObjectId object);
    void drop_busy(Object& o, Busy& b);

    // --- page_agent_pages.cc ---
    Object* object_of(ObjectId object);
    State state(const Object& o, uint64_t index) const;
    void set_state(Object& o, uint64_t index, Presence presence, Epoch epoch);
    Busy* find_busy(PageKey key);
    Busy& make_busy(Object& o, PageKey key);
    void free_if_idle(Object& o, Busy& b);
    void settle(Object& o, Busy& b);
    bool apply_grants(Object& o, Busy& b);
    bool start_grant(Object& o, Busy& b, PageGrant& grant);
    bool serve_waiters(Object& o, Busy& b, bool woken);
    bool answer_recall(Object& o, Busy& b);
    void ask(Object& o, Busy& b);
    void ask_ahead(Object& o, Request& request);
    void ask_stream(Object& o, const Fault& fault, const Actor& a, const ReadAhead::Ask& ask);
    void add_marker(PageKey key);
    void keep_or_settle(Object& o, Busy& b);
    void put_in(PageKey key);
    void start_install(Busy& b, Presence presence, PageContent content);
    void start_unprotect(Busy& b);
    void start_take(Busy& b, Presence had, Presence leave, bool want_data);
    void finish_take(Object& o, Busy& b, TakeResult& result);
    void finish_install(Object& o, Busy& b);
    void surrender(PageKey key, const PageRecall& recall, Presence left, PageContent content);
    void acknowledge(uint32_t collect);
    void finish_push(Object& o, Busy& b, const PagePush& push, PageContent content);
    void forget_withdrawn(Busy& b);

    // --- page_agent_actors.cc ---
    Actor& thread(Tid tid);
    Actor* find_actor(ActorId id);
    void note_fault(Actor& a, const Fault& fault, Presence presence);
    void end_instruction(Actor& a);
    void stop_waiting(Actor& a);
    void hold(Busy& b, Actor& a, Access access);
    void satisfied(Busy& b, Waiter waiter);
    uint64_t held_until(const Busy& b, const Hold& h, const Seniority* by);
    uint64_t blocked_until(const Busy& b, const Seniority* by);
    void lose_holds(Busy& b, Presence left);
    void defer(Busy& b, uint64_t retry_ns);
    void expire_holds();
    void poke_deferred();
    void finish_acquire(Actor& a);
    void end_acquire(ActorId id);
};

}  // namespace gpr
