#include "acceptor/worker/memory_calls.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "acceptor/worker/file_mappings.h"
#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/places.h"
#include "acceptor/worker/worker.h"
#include "monitor/node/mapping_news.h"
#include "monitor/node/protection.h"
#include "monitor/paging/growth.h"

namespace gpr::worker {

namespace {

constexpr uint64_t lowest_hint = 0x10000;                         // the usual vm.mmap_min_addr
constexpr uint64_t low_begin = 0x40000000, low_end = 0x80000000;  // of MAP_32BIT

}  // namespace

tl::expected<Address, int> MemoryCalls::place_for(AddressSpace& space,
                                                  const Notification& n) const {
    uint64_t flags = n.args[3];
    uint64_t size = (n.args[1] + page_size - 1) & page_mask;
    uint64_t at = n.args[0];
    bool fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
    if (n.args[1] == 0 || (fixed && at % page_size != 0) || n.args[5] % page_size != 0) {
        return tl::make_unexpected(EINVAL);
    }
    if (size < n.args[1] || size > address_limit || (fixed && !sound(at, size)) ||
        (fixed && Range{{at}, {at + size}}.overlaps(reserved))) {
        return tl::make_unexpected(ENOMEM);
    }
    if ((flags & MAP_FIXED_NOREPLACE) == MAP_FIXED_NOREPLACE &&
        !space.is_free({{at}, {at + size}})) {
        return tl::make_unexpected(EEXIST);
    }
    if (fixed) return Address{at};
    at &= page_mask;
    Range hint{{at}, {at + size}};
    bool low = flags & MAP_32BIT;
    bool heeded = at >= lowest_hint && sound(at, size) && (!low || hint.end.value <= low_end);
    if (heeded && space.is_free(hint) && !hint.overlaps(reserved)) return Address{at};
    Range window = arena_of(worker_.self);
    if (low) window = {{low_begin}, {low_end}};
    auto gap = space.find_gap(window, size);
    if (!gap) return tl::make_unexpected(no_room);
    return *gap;
}

// Whether the kernel here, whose memory it would be, lets there be so much. Under the lock.
Task<int64_t> MemoryCalls::try_size(RemoteProcess& process, Notification n) {
    StubThread& executor = process.fragment->executor();
    uint64_t flags = n.args[3] & ~uint64_t{MAP_POPULATE | MAP_32BIT};
    int64_t at = co_await executor.call(SYS_mmap, 0, n.args[1], n.args[2], flags, ~0UL, 0);
    if (at < 0) co_return at;
    co_return co_await executor.call(SYS_munmap, static_cast<uint64_t>(at), n.args[1]);
}

// It may be refused: then memory is only asked for at home without need.
void MemoryCalls::note_limit(RemoteProcess& caller, const Notification& n) {
    uint64_t resource = n.args[n.number == SYS_setrlimit ? 0 : 1];
    bool sets = (resource == RLIMIT_AS || resource == RLIMIT_DATA) &&
                (n.number == SYS_setrlimit || n.args[2] != 0);
    bool own = n.number == SYS_setrlimit || n.args[0] == 0;
    RemoteProcess* process = own ? &caller : worker_.find_process(static_cast<pid_t>(n.args[0]));
    if (sets && process) process->limits_memory = true;
}

Task<void> MemoryCalls::map_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    uint64_t flags = n.args[3];
    bool private_anonymous = (flags & MAP_ANONYMOUS) && (flags & MAP_TYPE) == MAP_PRIVATE &&
                             !(flags & (MAP_HUGETLB | MAP_GROWSDOWN));
    if (!(flags & MAP_ANONYMOUS) && has_fd_here(process, n.args[4])) {
        co_await worker_.file_mappings.map_file(process, n);
        co_return;
    }
    bool locks = (flags & MAP_LOCKED) || process.fragment->space.lock_of_new() != LockOfNew::none;
    bool asks_home = !private_anonymous || process.limits_memory || locks ||
                     concerns_stack(process.fragment->space, SYS_mmap, n.args);
    if (asks_home) {
        co_await worker_.forwarding.forward(process, thread, n);
        co_return;
    }
    auto guard = co_await worker_.metadata.lock();
    AddressSpace& space = process.fragment->space;
    auto at = place_for(space, n);
    if (!at && at.error() == no_room && co_await try_size(process, n) == 0) {
        guard.release();
        n.args[3] |= MAP_NORESERVE;
        co_await worker_.forwarding.forward(process, thread,
                                            n);  // the kernel at home finds a place
        co_return;
    }
    worker_.counts.native++;
    if (!at) {
        process.notifier->reply_error(n.id, at.error() == no_room ? ENOMEM : at.error());
        co_return;
    }
    Mapping m;
    m.range = {*at, Address{at->value + n.args[1]}.page_end()};
    m.prot = static_cast<int>(n.args[2]);
    m.object = worker_.next_object++;
    m.birth = worker_.self;
    bool replaces = (flags & MAP_FIXED_NOREPLACE) == 0 && (flags & MAP_FIXED) != 0;
    uint64_t made = MAP_PRIVATE | MAP_ANONYMOUS | (flags & (MAP_POPULATE | MAP_NORESERVE));
    int64_t result = co_await process.fragment->executor().call(
        SYS_mmap, at->value, m.range.size(), n.args[2],
        made | (replaces ? MAP_FIXED : MAP_FIXED_NOREPLACE), ~0UL, 0);
    if (result == -EEXIST) {  // the kernel's own pages, which no list has: home's knows what to do
        guard.release();
        co_await worker_.forwarding.forward(process, thread, n);
        co_return;
    }
    if (result == static_cast<int64_t>(at->value)) {
        worker_.pager.objects.add(m.object, worker_.self);
        tell_mapped(worker_.link, directory_node, process.pid, m, 0);
        auto replaced = space.map(std::move(m));
        worker_.pager.objects.discard_unmapped(space, replaced);
        for (const Mapping& old : replaced) process.fragment->wake(old.range);
        co_await worker_.pager.trapped.forget_trapped(replaced);
    }
    process.notifier->reply_raw(n.id, result);
}

Task<void> MemoryCalls::unmap_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    if (concerns_stack(process.fragment->space, SYS_munmap, n.args)) {
        co_await worker_.forwarding.forward(process, thread, n);
        co_return;
    }
    worker_.counts.native++;
    auto guard = co_await worker_.metadata.lock();
    uint64_t size = (n.args[1] + page_size - 1) & page_mask;
    Range range{{n.args[0]}, {n.args[0] + size}};
    if (!sound(n.args[0], size) || range.overlaps(reserved)) {
        process.notifier->reply_error(n.id, EINVAL);
        co_return;
    }
    int64_t result = co_await unmap(process, range);
    process.notifier->reply_raw(n.id, result);
}

// Under the lock.
Task<int64_t> MemoryCalls::unmap(RemoteProcess& process, Range range) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    int64_t result =
        co_await fragment->executor().call(SYS_munmap, range.begin.value, range.size());
    if (result != 0) co_return result;
    auto gone = fragment->space.unmap(range);
    worker_.pager.objects.discard_unmapped(fragment->space, gone);
    for (const Mapping& old : gone) fragment->wake(old.range);
    tell_unmapped(worker_.link, process.pid, range);
    co_await worker_.pager.trapped.forget_trapped(gone);
    co_return 0;
}

Task<void> MemoryCalls::protect_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    if (concerns_stack(process.fragment->space, SYS_mprotect, n.args)) {
        co_await worker_.forwarding.forward(process, thread, n);
        co_return;
    }
    worker_.counts.native++;
    const pid_t pid = process.pid;
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto notifier = process.notifier;
    auto guard = co_await worker_.metadata.lock();
    if (protects_growing(n.number, n.args)) {
        auto all = growing_range(fragment->space, n.args);
        if (!all) {
            notifier->reply_error(n.id, all.error());
            co_return;
        }
        n.args[0] = all->begin.value;
        n.args[1] = all->size();
        n.args[2] &= ~uint64_t{PROT_GROWSDOWN | PROT_GROWSUP};
    }
    uint64_t size = (n.args[1] + page_size - 1) & page_mask;
    Range range{{n.args[0]}, {n.args[0] + size}};
    if (n.args[0] % page_size != 0) {
        notifier->reply_error(n.id, EINVAL);
        co_return;
    }
    if (range.overlaps(reserved)) {
        notifier->reply_error(n.id, ENOMEM);
        co_return;
    }
    auto key = static_cast<int>(n.args[3]);  // none has been given to anybody
    bool has_key = n.number == SYS_pkey_mprotect && key != -1 && key != 0;
    if (has_key) {
        notifier->reply_error(n.id, EINVAL);
        co_return;
    }
    Protection allowed = protection_of(fragment->space, range, n.args[2]);
    const bool refused = allowed.error == EACCES;  // which our memfd would not mind
    if (refused) {
        range = allowed.range;
        n.args[1] = size = range.size();
    }
    if ((n.args[2] & PROT_WRITE) && size != 0) {
        co_await worker_.pager.trapped.stop_trapping(fragment, range);
        co_await worker_.file_mappings.copy_files(fragment, range);
    }
    int64_t result =
        co_await fragment->executor().call(SYS_mprotect, n.args[0], n.args[1], n.args[2]);
    if (refused && result == 0) result = -EACCES;
    if (result == -ENOMEM) {  // the kernel stops at the first gap; without one it did nothing
        Address until = fragment->space.mapped_until(range.begin);
        range.end = until < range.end ? until : range.begin;
    }
    bool changed = result == 0 || result == -ENOMEM || (refused && result == -EACCES);
    if (changed && !range.empty() && size != 0) {
        fragment->space.for_each(range, [&](Mapping& m) { m.prot = static_cast<int>(n.args[2]); });
        tell_protected(worker_.link, pid, range, static_cast<int>(n.args[2]));
    }
    notifier->reply_raw(n.id, result);
}

}  // namespace gpr::worker
