// Pages beyond the end of a file that a private mapping shows. Natively whoever touches one dies of
// SIGBUS, or its system call fails with EFAULT, but once the file has grown the page is there. So
// it is poisoned for a moment, and then missing again: who comes later is answered anew.

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "monitor/paging/pager.h"

namespace gpr {

namespace {
// The thread that waits for it has to get onto its CPU.
constexpr std::chrono::milliseconds poisoned_for{2};
}  // namespace

void Pager::refuse_page(Fragment& fragment, const Mapping& mapping, Address at) {
    const PageKey key = mapping.key(at);
    const PageRun run{key.object, key.index, 1};
    bool again = is_being_removed(run);
    fragment.poison(at);
    if (again) return;
    removing_.push_back(run);
    loop_.after(poisoned_for, [this, weak = fragment.weak_from_this(), at, run] {
        if (is_being_removed(run)) spawn(remove(weak, at, run));
    });
}

void Pager::give_born(Fragment& fragment, const Mapping& mapping, Address at) {
    if (!materialise(fragment, mapping, at)) refuse_page(fragment, mapping, at);
}

// A kernel without CONFIG_MEMORY_FAILURE says BUS_ADRERR of its own.
std::optional<Address> Pager::absent_page(Fragment& fragment, const siginfo_t& info) const {
    bool fault = info.si_code == BUS_MCEERR_AR || info.si_code == BUS_ADRERR;
    if (info.si_signo != SIGBUS || !fault || fragment.lost) return {};
    Address at = Address{reinterpret_cast<uint64_t>(info.si_addr)}.page();
    const Mapping* m = fragment.space.find(at);
    if (!m || !m->file) return {};
    const PageKey key = m->key(at);
    bool poisoned = is_being_removed({key.object, key.index, 1});
    return poisoned || info.si_code == BUS_MCEERR_AR ? std::optional(at) : std::nullopt;
}

Task<bool> Pager::is_beyond_end(std::shared_ptr<Fragment> fragment, Address at, Tid tid) {
    const Mapping* m = fragment->space.find(at);
    if (!m) co_return false;
    const PageKey key = m->key(at);
    const PageRun run{key.object, key.index, 1};
    auto told = refused_.find(tid);
    bool refused = told != refused_.end() && told->second == key;
    if (refused) refused_.erase(told);
    if (births_[key.object] == self_ && m->content) {
        std::byte probe;
        auto offset = static_cast<off_t>(m->content_offset + (at - m->range.begin));
        refused = pread(m->content->get(), &probe, 1, offset) <= 0;
    }
    if (is_shared(key.object)) {
        co_await remove_refusal(run);
    } else if (is_being_removed(run)) {
        co_await remove(fragment, at, run);
    }
    co_return refused;
}

}  // namespace gpr
