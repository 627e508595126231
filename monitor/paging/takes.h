// Removes pages from this node's memory, or reads them there.
#pragma once

#include "base/task.h"
#include "mm/page_actions.h"
#include "monitor/paging/part.h"

namespace gpr::paging {

class Takes {
public:
    Takes(Core& core, Pager& pager) : core_(core), pager_(pager) {}

    void begin(const Take& action);
    void find_touched(const FindTouched& action);

private:
    Task<void> take(Take action);
    bool take_early(const Take& action);

    Core& core_;
    Pager& pager_;
};

}  // namespace gpr::paging
