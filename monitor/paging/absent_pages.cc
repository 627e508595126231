#include "monitor/paging/absent_pages.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "monitor/paging/pager.h"

namespace gpr::paging {

namespace {
// Long enough for the waiting thread to get onto its CPU.
constexpr std::chrono::milliseconds poisoned_for{2};
}  // namespace

void AbsentPages::note_refused(Tid tid, PageKey key) {
    Refusal& told = refused_[tid];
    if (!(told.key == key)) told = {key};
    told.unseen = true;
}

void AbsentPages::refuse_page(Fragment& fragment, const Mapping& mapping, Address at) {
    const PageKey key = mapping.key(at);
    const PageRun run{key.object, key.index, 1};
    fragment.poison(at);
    // Listed every time, because an earlier removal may already be past this page.
    pager_.removals.add(run);
    core_.loop.after(poisoned_for, [this, weak = fragment.weak_from_this(), run] {
        if (pager_.removals.is_being_removed(run)) spawn(pager_.removals.remove(weak, run));
    });
}

void AbsentPages::give_born(Fragment& fragment, const Mapping& mapping, Address at) {
    if (!pager_.installs.materialise(fragment, mapping, at)) refuse_page(fragment, mapping, at);
}

// A kernel without CONFIG_MEMORY_FAILURE reports a poisoned page as BUS_ADRERR.
std::optional<Address> AbsentPages::absent_page(Fragment& fragment, const siginfo_t& info) const {
    bool fault = info.si_code == BUS_MCEERR_AR || info.si_code == BUS_ADRERR;
    if (info.si_signo != SIGBUS || !fault || fragment.lost) return {};
    Address at = Address{reinterpret_cast<uint64_t>(info.si_addr)}.page();
    const Mapping* m = fragment.space.find(at);
    if (!m || !m->file) return {};
    const PageKey key = m->key(at);
    bool poisoned = pager_.removals.is_being_removed({key.object, key.index, 1});
    return poisoned || info.si_code == BUS_MCEERR_AR ? std::optional(at) : std::nullopt;
}

Task<bool> AbsentPages::is_beyond_end(std::shared_ptr<Fragment> fragment, siginfo_t info, Tid tid) {
    const std::optional<Address> page = absent_page(*fragment, info);
    if (!page) co_return false;
    const Address at = *page;
    const Mapping* m = fragment->space.find(at);
    const PageKey key = m->key(at);
    const PageRun run{key.object, key.index, 1};
    auto told = refused_.find(tid);
    bool refused = told != refused_.end() && told->second.key == key && told->second.unseen;
    if (pager_.objects.is_born_here(key.object) && m->content) {
        std::byte probe;
        auto offset = static_cast<off_t>(m->content_offset + (at - m->range.begin));
        refused = pread(m->content->get(), &probe, 1, offset) <= 0;
    } else if (refused) {
        // The refusal may date from before the file grew, so the thread's next touch asks again.
        told->second.unseen = false;
        refused = std::exchange(told->second.touched_again, true);
        if (refused) refused_.erase(told);
    }
    if (pager_.shared.contains(key.object)) {
        co_await pager_.room.remove_refusal(run);
    } else if (pager_.removals.is_being_removed(run)) {
        co_await pager_.removals.remove(fragment, run);
    }
    co_return refused;
}

}  // namespace gpr::paging
