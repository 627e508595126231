// What has been counted of an acceptor in a session so far.
#pragma once

#include <cstdint>

#include "monitor/node/node_counts.h"
#include "monitor/node/usage.h"
#include "transport/link.h"

namespace gpr::home {

struct RemoteCounts {
    uint64_t arrivals = 0;  // threads that came from home
    Usage cpu;              // of processes that have ended there
    NodeCounts told;        // by the acceptor when it last did, and by those before it
    NodeCounts before;      // of those in whose place it is
    LinkStats link_before;  // of their links

    void note(const NodeCounts& now) {
        told = before;
        told += now;
    }
};

}  // namespace gpr::home
