// The inside of PageAgent, for page_agent*.cc only.
//
// A page has an eight-byte entry. Everything that is going on about it (waiters, holds, a recall,
// an operation under way) is in a Busy, which exists only while something is. settle() looks at one
// page and does what can be done now; every event ends there.
#pragma once

#include <deque>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "mm/agent_state.h"
#include "mm/busy_page.h"
#include "mm/directory_reports.h"
#include "mm/fault_trails.h"
#include "mm/page_actors.h"
#include "mm/page_operations.h"
#include "mm/page_table.h"

namespace gpr {

inline constexpr uint64_t busy_bit = 4;  // in an entry, see page_agent_pages.cc

struct PageAgent::Core : AgentState {
    using Actor = PageActor;
    using Busy = BusyPage;
    using Waiter = BusyPage::Waiter;
    using Hold = BusyPage::Hold;
    using PageRecall = BusyPage::PageRecall;
    using PageGrant = BusyPage::PageGrant;
    using PagePush = BusyPage::PagePush;
    using Operation = BusyPage::Operation;

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

    std::unordered_map<ObjectId, Object> objects;
    PageMap<Busy> busy;
    PageActors actors{*this};
    PageOperations operations{*this};
    DirectoryReports reports{*this};
    std::unordered_map<uint64_t, ActorId> acquires;  // by cookie, unfinished or held
    std::unordered_map<uint64_t, Census> censuses;   // under way, by the operation's number
    uint64_t pushed = 0;                             // pages given away so far
    std::deque<std::pair<uint64_t, PageKey>> expiring;
    std::deque<std::pair<uint64_t, ActorId>> finished;  // acquires in their last hold time
    std::vector<Deferred> deferred;
    uint32_t ahead = 0;  // pages wanted after the one that settle() is called for
    ReadAhead read_ahead;
    FaultTrails trails;
    std::unordered_set<PageKey, PageKeyHash> markers;  // requested, or kept
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
    void refuse_waiters(Busy& b, NodeId anchor);
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
    void ask_trail(const Object& o, const Fault& fault, const Actor& a);
    void add_marker(PageKey key);
    void keep_or_settle(Object& o, Busy& b);
    void put_in(PageKey key);
    void start_take(Busy& b, Presence had, Presence leave, bool want_data);
    void finish_take(Object& o, Busy& b, TakeResult& result);
    void finish_install(Object& o, Busy& b);
    void finish_push(Object& o, Busy& b, const PagePush& push, PageContent content);
    void forget_withdrawn(Busy& b);

    // --- page_agent_actors.cc ---
    void stop_waiting(Actor& a);
    void hold(Busy& b, Actor& a, Access access);
    void satisfied(Busy& b, Waiter waiter);
    void defer(Busy& b, uint64_t retry_ns);
    void expire_holds();
    void poke_deferred();
    void finish_acquire(Actor& a);
    void end_acquire(ActorId id);
};

}  // namespace gpr
