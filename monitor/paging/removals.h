// Pages that this node has given up already, and that are still in a process's memory: nothing is
// put in their place until they are gone.
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
    explicit Removals(Core& core) : core_(core) {}

    // Listed by who gives them up. Then remove(), or what ends with done().
    void add(const PageRun& run);
    void done(const PageRun& run);
    Task<void> remove(std::weak_ptr<Fragment> weak, Address at, PageRun run);

    Task<void> removed();
    [[nodiscard]] bool is_removing() const { return !removing_.empty(); }
    [[nodiscard]] bool is_being_removed(const PageRun& run) const;

private:
    Core& core_;
    std::vector<PageRun> removing_;
};

}  // namespace gpr::paging
