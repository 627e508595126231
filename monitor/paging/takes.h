// Removes pages from this node's memory, or reads them there.
#pragma once

#include "base/task.h"
#include "mm/page_actions.h"
#include "monitor/paging/core.h"
#include "monitor/paging/fragment.h"
#include "monitor/paging/part.h"

namespace gpr::paging {

class Takes {
public:
    Takes(Core& core, Pager& pager) : core_(core), pager_(pager) {}

    void begin(const Take& action);
    void find_touched(const FindTouched& action);

private:
    Task<void> find_touched_later(FindTouched action);
    Task<void> take(Take action);
    Task<void> bring_followed(PageRun run, uint32_t first);
    Task<void> take_piece(const Take& action, Piece p, std::vector<TakeResult>& results);
    Fragment::Taken read_piece(const Take& action, const Piece& p);
    Task<Fragment::Taken> remove_piece(const Take& action, Piece p);
    bool take_early(const Take& action);

    Core& core_;
    Pager& pager_;
};

}  // namespace gpr::paging
