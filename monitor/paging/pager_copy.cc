// Forks whose memory stays where it is: each kernel copies what is in memory there, and every node
// what it knows of the pages. docs/decisions/0018-forks-copy-where-pages-are.md

#include <algorithm>

#include "monitor/paging/pager.h"

namespace gpr {

Task<void> Pager::begin_copy(std::shared_ptr<Fragment> fragment) {
    Forking& forking = forking_[fragment.get()];
    forking.count++;
    agent_.let_pages_wait(false, now());
    for (const auto& [begin, m] : fragment->space.all()) {
        if (!directory_ || is_shared(m.object)) continue;
        directory_->hold_all(m.object);
        forking.held.push_back(m.object);
    }
    settle();
    co_await quiet(fragment);
}

Task<void> Pager::quiet(std::shared_ptr<Fragment> fragment) {
    while (forking_.contains(fragment.get()) && !is_quiet(*fragment)) co_await moved_.wait();
}

bool Pager::is_quiet(const Fragment& fragment) const {
    const auto& mappings = fragment.space.all();
    return removing_.empty() &&
           std::all_of(mappings.begin(), mappings.end(), [this](const auto& entry) {
               const Mapping& m = entry.second;
               return is_shared(m.object) || (agent_.is_quiet(m.object) &&
                                              (!directory_ || directory_->is_quiet(m.object)));
           });
}

void Pager::end_copy(Fragment& fragment) {
    auto it = forking_.find(&fragment);
    if (it != forking_.end() && --it->second.count == 0) forget_forks(fragment);
}

void Pager::copy_object(ObjectId from, ObjectId to) {
    births_[to] = births_[from];
    agent_.copy_object(from, to);
    if (directory_) directory_->copy_object(from, to);
}

// The kernel drops the marks when it copies memory.
void Pager::protect_copies(Fragment& fragment) {
    for (const auto& [begin, m] : fragment.space.all()) {
        if (!m.registered || m.shared || m.backing != Backing::anonymous) continue;
        uint64_t pages = m.range.size() / page_size;
        for (PageSpan span : agent_.shared_pages(m.object, m.object_page, pages)) {
            Address at = m.range.begin + (span.first - m.object_page) * page_size;
            fragment.write_protect({at, at + span.count * page_size});
        }
    }
}

}  // namespace gpr
