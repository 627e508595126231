// Installs pages in memory, makes them writable, and wakes the threads that wait for them.
#pragma once

#include "base/address.h"
#include "base/task.h"
#include "mm/page_actions.h"
#include "monitor/paging/part.h"

namespace gpr::paging {

class Installs {
public:
    Installs(Core& core, Pager& pager) : core_(core), pager_(pager) {}

    void install(const Install& action);
    void unprotect(const Unprotect& action);
    void wake(const Wake& action);
    // Installs the initial content of a page that was born here and never touched. False if its
    // file ends before it.
    bool materialise(Fragment& fragment, const Mapping& mapping, Address at);

    // After a wait: the pages that have not been dropped meanwhile, which must not return.
    [[nodiscard]] std::vector<Install> current_parts(const Install& action) const;

private:
    [[nodiscard]] bool must_wait(const PageRun& run) const;
    void tell(const Install& action) const;
    void install_private(const Install& action);
    Task<void> install_later(Install action);

    Core& core_;
    Pager& pager_;
};

}  // namespace gpr::paging
