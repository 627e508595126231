// Pages of shared memory that home cannot give at the moment or at all. Home reads an object
// through its own mappings, which show nothing while they are being moved. And what the acceptor
// writes must have room in the file system: if there is none, the write fails at once, as natively.
#pragma once

#include <vector>

#include "base/task.h"
#include "mm/page_actions.h"
#include "monitor/paging/part.h"

namespace gpr::paging {

class SharedRoom {
public:
    SharedRoom(Core& core, Pager& pager) : core_(core), pager_(pager) {}

    Task<void> install_when_settled(Install action);
    [[nodiscard]] bool may_take_now(const Take& action) const;
    Task<void> take_when_settled(Take action);
    void refuse(const Anchored& action);
    Task<void> remove_refusal(PageRun run);

private:
    Task<std::vector<bool>> make_room(PageRun run);

    Core& core_;
    Pager& pager_;
};

}  // namespace gpr::paging
