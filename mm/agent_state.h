// What the parts of a PageAgent share.
#pragma once

#include "mm/page_agent.h"
#include "mm/page_outbox.h"

namespace gpr {

inline constexpr uint64_t never = UINT64_MAX;

struct AgentState {
    NodeId self = 0;
    AgentOptions options;
    AgentStats stats;
    Outbox out;
    uint64_t now = 0;
    uint64_t clock = 0;
    bool recheck_deferred = false;
};

}  // namespace gpr
