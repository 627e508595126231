// Forks that leave memory where it is: each kernel copies the pages that are in its memory, and
// each node copies what it knows about the pages. docs/decisions/0018-forks-copy-where-pages-are.md

#include <set>

#include "monitor/paging/forks.h"
#include "monitor/paging/pager.h"

namespace gpr::paging {

Task<void> Forks::begin_copy(std::shared_ptr<Fragment> fragment) {
    Forking& forking = forking_[fragment.get()];
    forking.count++;
    core_.agent.let_pages_wait(false, core_.now());
    std::set<ObjectId> objects;
    for (const auto& [begin, m] : fragment->space.all()) {
        if (core_.directory && !pager_.shared.contains(m.object)) objects.insert(m.object);
    }
    for (ObjectId object : objects) {
        core_.directory->hold_all(object);
        forking.held.push_back(object);
    }
    core_.settle();
    co_await quiet(fragment);
}

Task<void> Forks::quiet(std::shared_ptr<Fragment> fragment) {
    while (forking_.contains(fragment.get()) && !is_quiet(*fragment)) co_await core_.moved.wait();
}

bool Forks::is_quiet(const Fragment& fragment) const {
    const ObjectTest own = [&](ObjectId object) {
        return fragment.space.shows(object) && !pager_.shared.contains(object);
    };
    return !pager_.removals.is_removing() && core_.agent.is_quiet(own) &&
           (!core_.directory || core_.directory->is_quiet(own));
}

void Forks::end_copy(Fragment& fragment) {
    auto it = forking_.find(&fragment);
    if (it != forking_.end() && --it->second.count == 0) forget(fragment);
}

// The kernel's copy lacks the write-protect marks of userfaultfd.
void Forks::protect_copies(Fragment& fragment) {
    for (const auto& [begin, m] : fragment.space.all()) {
        if (!m.registered || m.shared || m.backing != Backing::anonymous) continue;
        uint64_t pages = m.range.size() / page_size;
        for (PageSpan span : core_.agent.shared_pages(m.object, m.object_page, pages)) {
            Address at = m.range.begin + (span.first - m.object_page) * page_size;
            fragment.write_protect({at, at + span.count * page_size});
        }
    }
}

}  // namespace gpr::paging
