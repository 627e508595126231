// Pages that the supervisor itself needs: fetched, installed, and held for as long as it says.
#pragma once

#include <cstdint>
#include <vector>

#include "base/address.h"
#include "base/task.h"
#include "mm/page_protocol.h"
#include "monitor/paging/part.h"

namespace gpr::paging {

class Supply {
public:
    Supply(Core& core, Pager& pager) : core_(core), pager_(pager) {}

    // Fetches all pages of the range at once for this access. False if a part is not mapped.
    Task<bool> acquire(Fragment& fragment, Range range, Access access);
    // The same, and installs them, even pages that nobody has touched.
    Task<bool> make_resident(Fragment& fragment, Range range, Access access);
    // The same for several ranges, and keeps the pages on this node until release(): for memory
    // that the kernel accesses without waiting for a page. While holding, do not ask for more.
    // Returns 0 if there is nothing to hold.
    Task<uint64_t> hold(Fragment& fragment, std::vector<Range> ranges, Access access);
    void release(uint64_t hold);

private:
    bool add_runs(Fragment& fragment, Range range, std::vector<PageRun>& runs);
    Task<bool> acquire_runs(std::vector<PageRun> runs, Access access, uint64_t cookie, bool hold);
    bool make_present(Fragment& fragment, Address at);

    Core& core_;
    Pager& pager_;
};

}  // namespace gpr::paging
