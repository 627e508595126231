// The operations that an agent asks for, joined for adjacent pages, and which are under way.
#pragma once

#include <unordered_map>

#include "mm/agent_state.h"
#include "mm/busy_page.h"

namespace gpr {

class PageOperations {
public:
    explicit PageOperations(AgentState& agent) : agent_(agent) {}

    uint64_t new_id() { return next_++; }
    void install(BusyPage& b, Presence presence, PageContent content);
    void unprotect(BusyPage& b);
    void take(BusyPage& b, Presence had, Presence leave, bool want_data);
    // The operation is over. Returns its pages.
    PageRun finish(uint64_t id);

private:
    AgentState& agent_;
    std::unordered_map<uint64_t, PageRun> runs_;
    uint64_t next_ = 1;
};

}  // namespace gpr
