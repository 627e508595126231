// Pages that this node has given up already but that are still in a process's memory. Nothing may
// be installed in their place until they are removed.
#pragma once

#include <memory>
#include <vector>

#include "base/address.h"
#include "base/task.h"
#include "mm/page_protocol.h"
#include "monitor/paging/part.h"

namespace gpr::paging {

class Removals {
public:
    Removals(Core& core, Pager& pager) : core_(core), pager_(pager) {}

    // To be called by whoever gives the pages up. It must be followed by remove() or done().
    void add(const PageRun& run);
    void done(const PageRun& run);
    Task<void> remove(std::weak_ptr<Fragment> weak, PageRun run);

    Task<void> removed();
    [[nodiscard]] bool is_removing() const { return !removing_.empty(); }
    [[nodiscard]] bool is_being_removed(const PageRun& run) const;

private:
    Core& core_;
    Pager& pager_;
    std::vector<PageRun> removing_;
};

}  // namespace gpr::paging
