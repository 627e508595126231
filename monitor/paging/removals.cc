#include "monitor/paging/removals.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>

#include "monitor/paging/pager.h"

namespace gpr::paging {

Task<void> Removals::remove(std::weak_ptr<Fragment> weak, PageRun run) {
    auto fragment = weak.lock();
    for (uint32_t i = 0; fragment && fragment->has_helpers() && i < run.count;) {
        const auto piece = core_.piece_at(run, i);
        if (!piece || piece->fragment != fragment.get()) {
            i++;
            continue;
        }
        if (pager_.ranges.is_locked(*piece)) {
            co_await core_.moved.wait();
            continue;
        }
        auto here = pager_.ranges.share(*piece);
        auto page_mover = co_await fragment->page_mover().lock();
        // Removed by somebody else meanwhile; there may be a new page.
        if (!is_being_removed(run)) co_return;
        std::vector<Call> calls{
            Call{SYS_madvise, {piece->address.value, piece->count * page_size, MADV_DONTNEED}, 0}};
        co_await fragment->page_mover().run_locked(calls);
        i += piece->count;
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
