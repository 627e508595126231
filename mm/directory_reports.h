// What an agent tells the directory about pages that it had or was asked for.
#pragma once

#include <vector>

#include "mm/agent_state.h"
#include "mm/busy_page.h"

namespace gpr {

class DirectoryReports {
public:
    explicit DirectoryReports(AgentState& agent) : agent_(agent) {}

    void surrender(PageKey key, const BusyPage::PageRecall& recall, Presence left,
                   PageContent content);
    void acknowledge(uint32_t collect);
    // looked: how many pages of the census were examined. pushed: how many pages the agent has
    // given away so far.
    void touched(const Census& census, uint64_t looked, uint64_t pushed,
                 std::vector<PageSpan> touched);

private:
    AgentState& agent_;
};

}  // namespace gpr
