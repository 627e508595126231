// Everything that is going on about one page of a node; exists only while something is.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "mm/page_protocol.h"

namespace gpr {

using ActorId = uint64_t;  // identifies who wants pages: page_actors.h

struct BusyPage {
    struct Waiter {
        ActorId actor;
        Access access;
        bool late = false;  // arrived during an install, and may miss its wake
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

    PageKey key;
    std::vector<Waiter> waiters;
    std::vector<Hold> holds;
    bool hold_queued = false;  // in expiring_
    bool deferred = false;     // in deferred_
    bool requested = false;
    Access requested_access = Access::read;
    uint64_t requested_age = 0;
    Operation operation = Operation::none;
    bool dropped =
        false;  // dropped since the operation began, so its result is of an old generation
    uint64_t operation_id = 0;
    PageRecall taking;                // the recall that a take answers, or
    std::optional<PagePush> pushing;  // the push that it is for
    Tid install_tid = 0;
    uint32_t install_collect = 0;
    std::optional<PageRecall> recall;  // not answered yet
    // The round of the recall that was answered with "pinned" or "absent". Unlike other answers
    // these change nothing here, so a repeated recall must be distinguished from a new one.
    std::optional<uint32_t> pinned_round;
    std::vector<PageGrant> grants;  // not applied yet
    bool kept = false;              // a marker: the grant waits until the page is wanted
    // A shared copy that was given up unasked, in the entry's version. The directory may not know
    // yet, or may not accept it: until the next version recalls are answered from here.
    std::optional<PageContent> withdrawn;

    void recycle() {
        BusyPage fresh;
        fresh.waiters.swap(waiters);
        fresh.holds.swap(holds);
        fresh.grants.swap(grants);
        *this = std::move(fresh);
        waiters.clear();
        holds.clear();
        grants.clear();
    }
};

}  // namespace gpr
