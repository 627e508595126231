#include "monitor/paging/removals.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>

#include "monitor/paging/pager.h"

namespace gpr::paging {

// Holds the executor, which changes the address space, so that `at` still means the same page.
Task<void> Removals::remove(std::weak_ptr<Fragment> weak, Address at, PageRun run) {
    auto fragment = weak.lock();
    if (fragment && fragment->has_helpers()) {
        auto executor = co_await fragment->executor().lock();
        auto page_mover = co_await fragment->page_mover().lock();
        // Removed by somebody else meanwhile; there may be a new page.
        if (!is_being_removed(run)) co_return;
        auto seen = fragment->space.address_of(run[0]);
        if (seen && *seen == at) {
            std::vector<Call> calls{
                Call{SYS_madvise, {at.value, run.count * page_size, MADV_DONTNEED}, 0}};
            co_await fragment->page_mover().run_locked(calls);
        }
    }
    done(run);
}

void Removals::add(const PageRun& run) { removing_.push_back(run); }

void Removals::done(const PageRun& run) {
    auto listed = std::find(removing_.begin(), removing_.end(), run);
    if (listed != removing_.end()) removing_.erase(listed);
    core_.moved.notify_all();
}

Task<void> Removals::removed() {
    while (!removing_.empty()) co_await core_.moved.wait();
}

bool Removals::is_being_removed(const PageRun& run) const {
    return std::any_of(removing_.begin(), removing_.end(), [&](const PageRun& r) {
        return r.object == run.object && r.first < run.first + run.count &&
               run.first < r.first + r.count;
    });
}

}  // namespace gpr::paging
