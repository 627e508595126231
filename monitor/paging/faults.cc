#include "monitor/paging/faults.h"

#include <linux/userfaultfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "monitor/paging/pager.h"

namespace gpr::paging {

namespace {
constexpr uint32_t file_ahead = 15;  // pages: code and data of files are usually read in order

bool is_missing(Presence here, Access access) {
    return here == Presence::none || (here == Presence::shared && access == Access::write);
}

bool is_scratch(Address at) {
    return at.value - GPR_SCRATCH_RW < GPR_SCRATCH_SIZE ||
           at.value - GPR_SCRATCH_RWX < GPR_SCRATCH_SIZE;
}

// How many pages of its object are mapped beyond a mapping, in the same way: a heap grows piece by
// piece. Some of them are enough.
uint64_t pages_beyond(AddressSpace& space, const Mapping& mapping, bool after) {
    constexpr int most_pieces = 8;
    uint64_t pages = 0;
    const Mapping* m = &mapping;
    for (int i = 0; i < most_pieces; i++) {
        const Mapping* other = space.find(after ? m->range.end : m->range.begin - 1);
        const Mapping* low = after ? m : other;
        const Mapping* high = after ? other : m;
        if (!other || other->object != m->object || other->prot != m->prot || m->shared ||
            other->backing != m->backing || other->trapped != m->trapped || other->program_fills ||
            other->follows != m->follows ||
            high->object_page != low->object_page + low->range.size() / page_size) {
            break;
        }
        pages += other->range.size() / page_size;
        m = other;
    }
    return pages;
}

}  // namespace

void Faults::read(Fragment& fragment) {
    uffd_msg messages[32];
    for (;;) {
        ssize_t got = ::read(fragment.uffd(), messages, sizeof messages);
        if (got <= 0) return;
        size_t count = static_cast<size_t>(got) / sizeof messages[0];
        for (size_t i = 0; i < count; i++) {
            const uffd_msg& m = messages[i];
            if (m.event != UFFD_EVENT_PAGEFAULT) continue;
            uint64_t flags = m.arg.pagefault.flags;
            faults_++;
            pager_.traffic.note_fault(static_cast<Tid>(m.arg.pagefault.feat.ptid));
            on_fault(fragment, {m.arg.pagefault.address & page_mask},
                     (flags & (UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_WP)) != 0,
                     static_cast<Tid>(m.arg.pagefault.feat.ptid));
        }
        core_.settle();
        if (count < std::size(messages)) return;
    }
}

void Faults::on_fault(Fragment& fragment, Address at, bool write, Tid tid) {
    if (fragment.lost) {
        fragment.poison(at);
        return;
    }
    Mapping* mapping = fragment.space.find(at);
    // Our own scratch area: the thread must not fault there for ever.
    if (!mapping && is_scratch(at)) {
        fragment.install_zero(at, 1, true);
        return;
    }
    if (!mapping) {
        const bool is_met = unknown_fault_ && unknown_fault_(fragment, at);
        if (!is_met) fragment.wake({at, at + page_size});
        return;
    }
    bool elsewhere = mapping->trapped || mapping->anchored ||
                     (mapping->shared && pager_.shared.is_used_at_home(mapping->object));
    if (code_fault_ && (elsewhere || (any_fault_ && any_fault_(fragment, at, write, tid)))) {
        code_fault_(fragment, at, write, tid);
        return;
    }
    ask_for(fragment, *mapping, at, write, tid);
}

void Faults::ask_for(Fragment& fragment, Mapping& m, Address at, bool write, Tid tid) {
    Mapping* mapping = &m;
    note_waiting(tid);
    if (m.program_fills) pager_.unfilled.note_unfilled(fragment, at, write, tid);
    pager_.hot.note_missed(m, at, write, tid);
    Fault fault;
    fault.key = mapping->key(at);
    fault.access = write ? Access::write : Access::read;
    fault.tid = tid;
    uint64_t left = (mapping->range.end - at) / page_size - 1;
    if (pager_.shared.contains(fault.key.object)) {
        uint64_t pages = pager_.shared.pages(fault.key.object);
        left = fault.key.index < pages ? std::min(left, pages - fault.key.index - 1) : 0;
    }
    fault.pages_after = left + pages_beyond(fragment.space, m, true);
    fault.pages_before =
        (at - mapping->range.begin) / page_size + pages_beyond(fragment.space, m, false);
    fault.ahead = mapping->file ? file_ahead : 0;
    // The kernel shows shared objects to others, too, and trapped code is never installed.
    fault.may_wait = !pager_.shared.contains(fault.key.object) && !mapping->trapped;
    fault.has_trail = fault.may_wait && !mapping->anchored;
    if (m.program_fills || m.follows != 0) {  // such pages come one at a time
        fault.pages_before = fault.pages_after = 0;
        fault.may_wait = fault.has_trail = false;
    }
    spdlog::trace("fault: tid {} {:#x} {} object {:#x} page {} presence {}", tid, at.value,
                  write ? "write" : "read", fault.key.object, fault.key.index,
                  static_cast<int>(core_.agent.presence(fault.key)));
    if (core_.observer && is_missing(core_.agent.presence(fault.key), fault.access)) {
        core_.observer->on_miss(fragment, at, fault.key, fault.access, tid);
    }
    core_.agent.on_fault(fault, core_.now());
}

void Faults::serve(Fragment& fragment, Address at, bool write, Tid tid) {
    Mapping* mapping = fragment.space.find(at);
    if (!mapping) {
        fragment.wake({at, at + page_size});
    } else if (!mapping->trapped || !pager_.trapped.show_now(fragment, *mapping, at)) {
        ask_for(fragment, *mapping, at, write && !mapping->trapped, tid);
        core_.settle();
    }
}

void Faults::note_waiting(Tid tid) {
    const uint64_t now = core_.now();
    if (faulting_.empty()) faulting_since_ = now;
    faulting_.emplace(tid, now);
}

void Faults::note_arrival() {
    if (faulting_.empty()) return;
    const uint64_t now = core_.now();
    waited_ns_ += now - faulting_since_;
    for (const auto& [tid, since] : faulting_) waits_.note(now - since);
    faulting_.clear();
}

void Faults::give_up(Fragment& fragment) {
    fragment.lost = true;
    // Wakes all waiting threads: they fault again, and on_fault now poisons the page.
    for (const auto& [begin, m] : fragment.space.all()) {
        if (m.registered) fragment.wake(m.range);
    }
}

}  // namespace gpr::paging
