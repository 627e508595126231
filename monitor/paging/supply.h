// Pages that the supervisor itself needs: brought here, in memory, and kept for as long as it says.
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

    // Makes the pages of the range present with that access, all at the same time. False: a part
    // of it is not mapped.
    Task<bool> acquire(Fragment& fragment, Range range, Access access);
    // The same, and the kernel has them mapped too, also those that nobody ever touched.
    Task<bool> make_resident(Fragment& fragment, Range range, Access access);
    // The same for several ranges at once, which then stay here until release(): for what the
    // kernel does to memory without waiting for a page. Who holds must not want more. 0: there is
    // nothing to hold.
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
