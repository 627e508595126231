#include "acceptor/worker/advice.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>

#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/mapping_changes.h"
#include "acceptor/worker/starts.h"
#include "acceptor/worker/worker.h"
#include "monitor/node/address_plan.h"
#include "monitor/node/advice.h"
#include "monitor/node/guard_advice.h"
#include "monitor/node/memory_lock.h"
#include "monitor/tracee/reserved_range.h"

namespace gpr::worker {

namespace {

// Advice for forks, which home makes, and advice that changes the file itself.
bool belongs_home(int advice) {
    return advice == MADV_DONTFORK || advice == MADV_DOFORK || advice == MADV_WIPEONFORK ||
           advice == MADV_KEEPONFORK || advice == MADV_REMOVE;
}

}  // namespace

Task<void> Advice::advise_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    uint64_t size = whole_pages(n.args[1]);
    Range range{{n.args[0]}, {n.args[0] + size}};
    auto advice = static_cast<int>(n.args[2]);
    if (int error = advice_error(process.fragment->space, n.args)) {
        worker_.counts.native++;
        process.notifier->reply_error(n.id, error);
        co_return;
    }
    if (belongs_home(advice)) {
        co_await worker_.forwarding.forward(process, thread, n);
        co_return;
    }
    if (is_guard_advice(n.number, n.args) && worker_.starts.has_guards()) {
        co_await worker_.forwarding.forward(process, thread, n);
        co_return;
    }
    worker_.counts.native++;
    if (is_guard_advice(n.number, n.args)) {
        process.notifier->reply_error(n.id, EINVAL);
        co_return;
    }
    if (advice == MADV_FREE && size != 0) {  // the content may be freed; we keep it
        process.notifier->reply(n.id, 0);
        co_return;
    }
    if (range.overlaps(reserved_range)) {
        process.notifier->reply_error(n.id, ENOMEM);
        co_return;
    }
    bool sound = n.args[0] % page_size == 0 && range.begin < range.end;
    if (sound && is_populating(n.args[2])) {
        auto notifier = process.notifier;
        int64_t result = co_await populate(process, n, range);
        notifier->reply_raw(n.id, result);
        co_return;
    }
    auto guard = co_await worker_.metadata.lock();
    bool of_file = false;
    bool discards = sound && (advice == MADV_DONTNEED || n.args[2] == MADV_DONTNEED_LOCKED);
    if (discards) {
        process.fragment->space.for_each(range, [&](const Mapping& m) {
            bool of_home = m.file && !m.shared && m.birth != worker_.self;
            of_file = of_file || of_home;
        });
    }
    if (of_file) {  // discarding shows the file again, and home has the file
        guard.release();
        co_await worker_.forwarding.forward(process, thread, n);
        co_return;
    }
    if (discards) {
        co_await discard_call(process, n);
        co_return;
    }
    int64_t result =
        co_await process.fragment->executor().call(SYS_madvise, n.args[0], n.args[1], n.args[2]);
    process.notifier->reply_raw(n.id, result);
}

// Mapping by mapping, until one fails. The caller must not hold the `metadata` lock: page messages
// wait for it, so missing pages would never arrive.
Task<int64_t> Advice::populate(RemoteProcess& process, Notification n, Range range) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    bool writes = n.args[2] == MADV_POPULATE_WRITE;
    for (Address at = range.begin; at < range.end;) {
        const Mapping* m = fragment->space.find(at);
        if (!m) co_return -ENOMEM;
        if (!(m->prot & (writes ? PROT_WRITE : PROT_READ))) co_return -EINVAL;
        Range part{at, std::min(m->range.end, range.end)};
        at = part.end;
        if (m->anchored || m->backing == Backing::native_file) {
            int64_t result = co_await fragment->executor().call(SYS_madvise, part.begin.value,
                                                                part.size(), n.args[2]);
            if (result != 0) co_return result;
            continue;
        }
        if (m->shared) {
            const uint64_t first = m->key(part.begin).index;
            const uint64_t pages = worker_.pager.shared.pages(m->object);
            const uint64_t there = pages > first ? (pages - first) * page_size : 0;
            part.end = part.begin + std::min(part.size(), there);
        }
        bool ok = part.empty() || co_await worker_.pager.supply.make_resident(
                                      *fragment, part, writes ? Access::write : Access::read);
        if (!ok || part.end < at) co_return -EFAULT;  // the file ends earlier
    }
    co_return 0;
}

// MADV_DONTNEED and the like. The caller must hold the `metadata` lock.
Task<void> Advice::discard_call(RemoteProcess& process, Notification n) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto notifier = process.notifier;
    const DiscardPlan plan = plan_discard(fragment->space, n.args);
    auto alone = co_await worker_.pager.ranges.lock(fragment, plan.range);
    for (const Mapping& m : plan.pieces) {
        co_await fragment->executor().call(SYS_madvise, m.range.begin.value, m.range.size(),
                                           MADV_DONTNEED);
        worker_.mapping_changes.changes.note_discarded(*fragment, m.range, {m});
        fragment->wake(m.range);
    }
    notifier->reply_raw(n.id, -plan.error);
}

// munlock only: whether memory may be locked is decided at home.
void Advice::unlock_call(RemoteProcess& process, const Notification& n) {
    worker_.counts.native++;
    AddressSpace& space = process.fragment->space;
    MemoryLock lock = memory_lock_of(n.number, n.args, space);
    mark_locked(space, lock);
    worker_.tell(process.pid, lock);
    process.notifier->reply_raw(n.id, -lock.error);
}

// mincore: a page counts as resident if any node has it. Programs also use it to look for free
// addresses, which can be answered without home.
Task<void> Advice::residence_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    uint64_t begin = n.args[0], size = n.args[1], told = n.args[2];
    bool aligned = begin % page_size == 0;
    bool unmapped = aligned && (size > address_limit || begin > address_limit - size);
    if (aligned && !unmapped && told < address_limit - size / page_size - 1) {
        Range range = Range{{begin}, {begin + size}}.pages();
        Address gap = fragment->space.first_gap(range);
        if (gap < range.end) {
            StubThread& executor = fragment->executor();
            uint64_t to = executor.scratch_address().value;
            // Only the kernel knows its own mappings, such as the vdso.
            unmapped = co_await executor.call(SYS_mincore, gap.value, page_size, to) == -ENOMEM;
        }
    }
    if (!unmapped) {
        co_await worker_.forwarding.forward(process, thread, n);
        co_return;
    }
    worker_.counts.native++;
    process.notifier->reply_error(n.id, ENOMEM);
}

// Adds the pages that are here to home's answer, piece by piece: the range may be as large as the
// address space.
Task<void> Advice::add_resident(RemoteProcess& process, Notification n) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    StubThread& executor = fragment->executor();
    Range range = Range{{n.args[0]}, {n.args[0] + n.args[1]}}.pages();
    Address told{n.args[2]};
    for (Address at = range.begin; at < range.end;) {
        uint64_t pages = std::min<uint64_t>((range.end - at) / page_size, sizeof gpr_slot::scratch);
        std::vector<std::byte> resident(pages);
        bool read = co_await worker_.pager.memory.read(*fragment, told, resident);
        if (!read) co_return;
        {
            auto guard = co_await executor.lock();
            uint64_t to = executor.scratch_address().value;
            std::vector<Call> calls{Call{SYS_mincore, {at.value, pages * page_size, to}, 0}};
            co_await executor.run_locked(calls);
            if (calls[0].result != 0) co_return;  // unmapped meanwhile
            auto here = executor.scratch().bytes(0, pages);
            for (uint64_t i = 0; i < pages; i++) resident[i] |= here[i];
        }
        add_known(fragment->space, at, resident);
        bool written = co_await worker_.pager.memory.write(*fragment, told, resident);
        if (!written) co_return;
        at = at + pages * page_size;
        told = told + pages;
    }
}

// Adds the pages that are not in memory here but belong to what is: locked ones, which may not have
// been touched, and those that this node, their birth node, has sent away or is just sending: home
// may not have heard of these when it made the call.
void Advice::add_known(const AddressSpace& space, Address begin,
                       std::vector<std::byte>& resident) const {
    const PageAgent& agent = worker_.pager.core.agent;
    const Range all{begin, begin + resident.size() * page_size};
    space.overlapping(all, [&](const Mapping& m) {
        const bool locked = is_locked_in(m);
        if (!locked && (m.shared || m.birth != worker_.self)) return;
        const Address end = std::min(m.range.end, all.end);
        for (Address at = std::max(m.range.begin, begin); at < end; at = at + page_size) {
            std::byte& told = resident[(at - begin) / page_size];
            if (told != std::byte{0}) continue;
            const PageKey key = m.key(at);
            bool known =
                locked || agent.presence(key) != Presence::exclusive || agent.in_motion(key);
            if (known) told = std::byte{1};
        }
    });
}

}  // namespace gpr::worker
