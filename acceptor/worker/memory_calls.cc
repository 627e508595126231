#include "acceptor/worker/memory_calls.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "acceptor/worker/contents.h"
#include "acceptor/worker/device_memory.h"
#include "acceptor/worker/file_mappings.h"
#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/mapping_changes.h"
#include "acceptor/worker/worker.h"
#include "monitor/node/address_plan.h"
#include "monitor/paging/growth.h"

namespace gpr::worker {

// Asks the kernel here, whose memory will be used, whether it allows so much. The caller must hold
// the `metadata` lock.
Task<int64_t> MemoryCalls::try_size(RemoteProcess& process, Notification n) {
    StubThread& executor = process.fragment->executor();
    uint64_t flags = n.args[3] & ~uint64_t{MAP_POPULATE | MAP_32BIT};
    int64_t at = co_await executor.call(SYS_mmap, 0, n.args[1], n.args[2], flags, ~0UL, 0);
    if (at < 0) co_return at;
    co_return co_await executor.call(SYS_munmap, static_cast<uint64_t>(at), n.args[1]);
}

// Also notes a limit that the call then fails to set; then home is asked needlessly, which is
// harmless.
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
    bool shared_anonymous = (flags & MAP_ANONYMOUS) && (flags & MAP_TYPE) == MAP_SHARED &&
                            !(flags & (MAP_HUGETLB | MAP_GROWSDOWN));
    bool is_here = flags & MAP_ANONYMOUS
                       ? shared_anonymous && DeviceMemory::may_be_pinned_by(process)
                       : has_fd_here(process, n.args[4]);
    if (is_here) {
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
    auto at = place_for(space, n.args, arena_of(worker_.self));
    if (!at && at.error() == no_room && co_await try_size(process, n) == 0) {
        guard.release();
        n.args[3] |= MAP_NORESERVE;
        // Home's kernel finds an address.
        co_await worker_.forwarding.forward(process, thread, n);
        co_return;
    }
    worker_.counts.native++;
    if (!at) {
        process.notifier->reply_error(n.id, at.error() == no_room ? ENOMEM : at.error());
        co_return;
    }
    const Range range = pages_of(at->value, n.args[1]);
    bool replaces = (flags & MAP_FIXED_NOREPLACE) == 0 && (flags & MAP_FIXED) != 0;
    auto alone = co_await worker_.pager.ranges.lock(process.fragment, range);
    uint64_t made = MAP_PRIVATE | MAP_ANONYMOUS | (flags & (MAP_POPULATE | MAP_NORESERVE));
    int64_t result = co_await process.fragment->executor().call(
        SYS_mmap, at->value, range.size(), n.args[2],
        made | (replaces ? MAP_FIXED : MAP_FIXED_NOREPLACE), ~0UL, 0);
    if (result == -EEXIST) {  // the kernel's own pages, which are in no list
        guard.release();
        co_await worker_.forwarding.forward(process, thread, n);
        co_return;
    }
    if (result == static_cast<int64_t>(at->value)) {
        Mapped new_one;
        new_one.mapping = private_mapping(n.args, range);
        new_one.mapping.object = worker_.next_object++;
        new_one.mapping.birth = worker_.self;
        co_await worker_.mapping_changes.changes.map(process.fragment, std::move(new_one),
                                                     worker_.self);
    }
    alone.release();
    process.notifier->reply_raw(n.id, result);
}

Task<void> MemoryCalls::unmap_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    if (concerns_stack(process.fragment->space, SYS_munmap, n.args)) {
        co_await worker_.forwarding.forward(process, thread, n);
        co_return;
    }
    worker_.counts.native++;
    auto guard = co_await worker_.metadata.lock();
    const Range range{{n.args[0]}, {n.args[0] + whole_pages(n.args[1])}};
    int64_t result = is_place(range) ? 0 : -EINVAL;
    for (Range part : beside_reserved(range)) {
        if (result == 0) result = co_await unmap(process, part);
    }
    process.notifier->reply_raw(n.id, result);
}

// The caller must hold the `metadata` lock.
Task<int64_t> MemoryCalls::unmap(RemoteProcess& process, Range range) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto alone = co_await worker_.pager.ranges.lock(fragment, range);
    int64_t result =
        co_await fragment->executor().call(SYS_munmap, range.begin.value, range.size());
    if (result != 0) co_return result;
    co_await worker_.mapping_changes.changes.unmap(fragment, range, worker_.self);
    co_return 0;
}

Task<void> MemoryCalls::protect_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    // What becomes writable counts as data, which a limit may refuse.
    const bool counts = process.limits_memory && (n.args[2] & PROT_WRITE);
    if (counts || concerns_stack(process.fragment->space, SYS_mprotect, n.args)) {
        co_await worker_.forwarding.forward(process, thread, n);
        co_return;
    }
    worker_.counts.native++;
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto notifier = process.notifier;
    auto guard = co_await worker_.metadata.lock();
    if (int error = spell_out_growing(fragment->space, n.number, n.args)) {
        notifier->reply_error(n.id, error);
        co_return;
    }
    Range range{{n.args[0]}, {n.args[0] + whole_pages(n.args[1])}};
    if (n.args[0] % page_size != 0) {
        notifier->reply_error(n.id, EINVAL);
        co_return;
    }
    if (range.overlaps(reserved_range)) {
        notifier->reply_error(n.id, ENOMEM);
        co_return;
    }
    auto key = static_cast<int>(n.args[3]);  // pkey_alloc always fails, so there are no keys
    bool has_key = n.number == SYS_pkey_mprotect && key != -1 && key != 0;
    if (has_key) {
        notifier->reply_error(n.id, EINVAL);
        co_return;
    }
    const Protection plan = protection_of(fragment->space, range, n.args[2]);
    const bool refused = plan.error == EACCES;  // our memfd would allow it
    if (refused) {
        range = plan.range;
        n.args[1] = range.size();
    }
    if ((n.args[2] & PROT_WRITE) && !range.empty()) {
        co_await worker_.pager.trapped.stop_trapping(fragment, range);
        co_await worker_.file_mappings.copy_files(fragment, range);
        co_await worker_.contents.give_up(fragment, range);
    }
    int64_t result =
        co_await fragment->executor().call(SYS_mprotect, n.args[0], n.args[1], n.args[2]);
    if (refused && result == 0) result = -EACCES;
    const Range part = plan.changed(range, result);
    if (!part.empty()) {
        co_await worker_.mapping_changes.changes.protect(fragment, part,
                                                         static_cast<int>(n.args[2]), worker_.self);
    }
    notifier->reply_raw(n.id, result);
}

}  // namespace gpr::worker
