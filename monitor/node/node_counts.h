// What an acceptor counts of its part of a session, from the beginning to now. It tells home when a
// process has ended there and when it is asked. A new count is a field here, one of
// wire::NodeCounts and a line in each of the two functions between them.
#pragma once

#include <cstdint>

#include "monitor/paging/pager_stats.h"
#include "transport/wire.h"

namespace gpr {

// System calls of the program that a worker saw, by who made them.
struct CallCounts {
    uint64_t home = 0;
    uint64_t native = 0;     // by the thread there
    uint64_t fd_owner = 0;   // there, on files of the acceptor: by a name at home or for a mapping
    uint64_t by_rule = 0;    // by the thread there, because a rule says so
    uint64_t delegated = 0;  // by nobody: the worker answered for a file of home
    uint64_t delegations = 0;     // no calls: how many such files there were
    uint64_t remembered = 0;      // by nobody: the worker repeated what home had told of a path
    uint64_t shown_contents = 0;  // no calls: mappings that show what was here before the session

    CallCounts& operator+=(const CallCounts& other) {
        home += other.home;
        native += other.native;
        fd_owner += other.fd_owner;
        by_rule += other.by_rule;
        delegated += other.delegated;
        delegations += other.delegations;
        remembered += other.remembered;
        shown_contents += other.shown_contents;
        return *this;
    }
};

struct NodeCounts {
    PagerStats pages;
    CallCounts calls;

    NodeCounts& operator+=(const NodeCounts& other) {
        pages += other.pages;
        calls += other.calls;
        return *this;
    }
};

inline void counts_to_wire(const NodeCounts& counts, wire::NodeCounts::Builder to) {
    to.setFaults(counts.pages.faults);
    to.setPagesIn(counts.pages.pages_in);
    to.setPagesOut(counts.pages.pages_out);
    to.setWaitedNs(counts.pages.waited_ns);
    to.setCallsHome(counts.calls.home);
    to.setCallsNative(counts.calls.native);
    to.setCallsFdOwner(counts.calls.fd_owner);
    to.setCallsByRule(counts.calls.by_rule);
    to.setCallsDelegated(counts.calls.delegated);
    to.setFilesDelegated(counts.calls.delegations);
    to.setCallsRemembered(counts.calls.remembered);
    to.setShownContents(counts.calls.shown_contents);
}

inline NodeCounts counts_from_wire(wire::NodeCounts::Reader from) {
    return {
        {from.getFaults(), from.getPagesIn(), from.getPagesOut(), from.getWaitedNs()},
        {from.getCallsHome(), from.getCallsNative(), from.getCallsFdOwner(), from.getCallsByRule(),
         from.getCallsDelegated(), from.getFilesDelegated(), from.getCallsRemembered(),
         from.getShownContents()},
    };
}

}  // namespace gpr
