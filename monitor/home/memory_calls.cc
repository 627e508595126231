#include "monitor/home/memory_calls.h"

#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/log.h"
#include "monitor/home/calls.h"
#include "monitor/home/code_placement.h"
#include "monitor/home/contended_memory.h"
#include "monitor/home/delegations.h"
#include "monitor/home/failures.h"
#include "monitor/home/file_copies.h"
#include "monitor/home/guard_pages.h"
#include "monitor/home/home.h"
#include "monitor/home/layouts.h"
#include "monitor/home/main_stack.h"
#include "monitor/home/shared_memory.h"
#include "monitor/home/taken_calls.h"
#include "monitor/node/address_plan.h"
#include "monitor/node/guard_advice.h"
#include "monitor/node/huge_pages.h"
#include "monitor/node/mapping_move.h"
#include "monitor/node/memory_lock.h"
#include "monitor/node/placement.h"
#include "monitor/paging/growth.h"
#include "monitor/tracee/reserved_range.h"
#include "syscall/table.h"

namespace gpr::home {

namespace {

bool reaches_across(const Notification& n) {
    const uint64_t size = whole_pages(n.args[1]);
    return memory_call_of(n.number) == MemoryCall::unmap && is_place(n.args[0], size) &&
           Range{{n.args[0]}, {n.args[0] + size}}.overlaps(reserved_range);
}

bool failed(int64_t result) { return result < 0 && result >= -4095; }

// The ranges that show the segment attached at this address: several if parts have been protected,
// unmapped or replaced since.
std::vector<Range> parts_of_segment(const AddressSpace& space, Address attached) {
    std::vector<Range> parts;
    ObjectId segment = 0;
    space.overlapping({attached, {address_limit}}, [&](const Mapping& m) {
        bool in_place = m.shared && m.range.begin - attached == m.object_page * page_size;
        if (!in_place || (!parts.empty() && m.object != segment)) return;
        segment = m.object;
        parts.push_back(m.range);
    });
    return parts;
}

// The flags of an mmap for a thread elsewhere: locks are noted only, and a page of anonymous memory
// begins where the thread is. Were it present here as well, it would be a second one.
uint64_t flags_here(uint64_t flags) {
    flags &= ~uint64_t{MAP_LOCKED};
    return flags & MAP_ANONYMOUS ? flags & ~uint64_t{MAP_POPULATE} : flags;
}

Notification notification_of(uint32_t number, capnp::List<uint64_t>::Reader args) {
    Notification n{};
    n.number = static_cast<int>(number);
    for (unsigned i = 0; i < 6 && i < args.size(); i++) n.args[i] = args[i];
    return n;
}

}  // namespace

int64_t MemoryCalls::lock_memory(HomeProcess& process, pid_t tid, uint32_t number,
                                 std::span<const uint64_t, 6> args) {
    AddressSpace& space = process.fragment->space;
    MemoryLock lock = memory_lock_of(number, args, space, lock_limit_of(tid));
    mark_locked(space, lock);
    home_.acceptors.tell(process.pid, lock);
    return -lock.error;
}

void MemoryCalls::tell_locks(HomeProcess& process) {
    const AddressSpace& space = process.fragment->space;
    for (const auto& [begin, m] : space.all()) {
        if (!m.locked) continue;
        home_.acceptors.tell(process.pid,
                             MemoryLock{m.range, true, 0, m.locked_on_fault, std::nullopt});
    }
    const LockOfNew of_new = space.lock_of_new();
    if (of_new != LockOfNew::none) {
        home_.acceptors.tell(process.pid, MemoryLock{{}, true, 0, false, of_new});
    }
}

// For a call that names an address at which the acceptor cannot map anything, in a session whose
// code runs there; this kernel might allow it to a privileged process. A positive errno or 0.
int MemoryCalls::place_error(const Notification& n) const {
    if (home_.policy.mixed()) return 0;
    Range place = fixed_place(n.number, n.args);
    if (n.number == SYS_shmat && n.args[1] != 0) place = pages_of(n.args[1], 1);
    return !place.empty() && place.begin < home_.acceptors.lowest_address() ? EPERM : 0;
}

// For mmap, mremap and brk that make locked memory. A positive errno or 0.
int MemoryCalls::lock_error(HomeProcess& process, const Notification& n, pid_t caller) {
    AddressSpace& space = process.fragment->space;
    const bool locks_all = space.lock_of_new() != LockOfNew::none;
    switch (memory_call_of(n.number)) {
        case MemoryCall::map:
            if (n.args[3] & MAP_LOCKED) {
                return locked_mapping_error(space, n.args[1], lock_limit_of(caller));
            }
            return locks_all ? new_mapping_error(space, n.args[1], lock_limit_of(caller)) : 0;
        case MemoryCall::move: return locked_growth_error(space, n.args, lock_limit_of(caller));
        case MemoryCall::set_break: {
            Address old_end = Address{process.break_end}.page_end();
            Address new_end = Address{n.args[0]}.page_end();
            if (!locks_all || new_end <= old_end) return 0;
            return new_mapping_error(space, new_end - old_end, lock_limit_of(caller));
        }
        default: return 0;
    }
}

// The result of a call that is refused before this kernel is asked; else 0. For shmat under
// mlockall(MCL_FUTURE) the segment's size is needed; other errors of shmat come first, and are left
// to the kernel.
Task<int64_t> MemoryCalls::refusal(HomeProcess& process, StubThread& stub, Notification n,
                                   pid_t caller) {
    int error = place_error(n);
    if (error == 0) error = lock_error(process, n, caller);
    if (error != 0 && n.number == SYS_brk) co_return static_cast<int64_t>(process.break_end);
    if (error != 0) co_return -error;
    std::shared_ptr<Fragment> fragment = process.fragment;
    const bool locks = fragment->space.lock_of_new() != LockOfNew::none;
    if (n.number != SYS_shmat || !locks) co_return 0;
    const LockLimit limit = lock_limit_of(caller);
    if (limit.capable) co_return 0;
    shmid_ds segment{};
    {
        auto guard = co_await stub.lock();
        std::vector<Call> calls{
            Call{SYS_shmctl, {n.args[0], IPC_STAT, stub.scratch_address().value}, 0}};
        co_await stub.run_locked(calls);
        if (calls[0].result != 0) co_return 0;
        segment.shm_segsz =
            stub.scratch().get<uint64_t>(offsetof(shmid_ds, shm_segsz)).to_pass_on();
    }
    const Range place = pages_of(n.args[1], segment.shm_segsz);
    const bool aligned = n.args[1] % page_size == 0 || (n.args[2] & SHM_RND);
    const bool replaces = n.args[2] & SHM_REMAP;
    const bool fits = n.args[1] == 0 ? !replaces : replaces || fragment->space.is_free(place);
    if (!aligned || !fits) co_return 0;
    co_return -new_mapping_error(fragment->space, segment.shm_segsz, limit);
}

// The ranges that the call unmaps or makes read-only, where shared memory may have been written.
std::vector<Range> MemoryCalls::hidden_by(HomeProcess& process, const Notification& n) {
    const Range named = pages_of(n.args[0], n.args[1]);
    switch (memory_call_of(n.number)) {
        case MemoryCall::map:
            return n.args[3] & MAP_FIXED ? std::vector{named} : std::vector<Range>{};
        case MemoryCall::unmap:
        case MemoryCall::protect:
        case MemoryCall::remap_file: return {named};
        case MemoryCall::move:
            if (!(n.args[3] & MREMAP_FIXED)) return {named};
            return {named, pages_of(n.args[4], n.args[2])};
        case MemoryCall::detach: return parts_of_segment(process.fragment->space, {n.args[0]});
        default: return {};
    }
}

// Fetches what was written in those ranges, so that it is in the objects before the call.
Task<void> MemoryCalls::save_hidden(HomeProcess& process, Notification n) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    for (Range range : hidden_by(process, n)) {
        co_await home_.shared_memory.save_shared(fragment->space, range);
    }
}

// The thread makes the call in its stub. Under the lock, no other thread's change comes between the
// call and our record of it.
Task<void> MemoryCalls::memory_call(HomeProcess& process, HomeThread& thread, Notification n) {
    auto guard = co_await home_.metadata.lock();
    // A signal has interrupted it: the thread calls again.
    if (!home_.notifier->still_valid(n.id)) co_return;
    std::shared_ptr<Fragment> fragment = process.fragment;
    co_await save_hidden(process, n);
    auto taken = co_await home_.taken_calls.take_call(thread);
    if (!taken) co_return;
    StubThread& stub = *taken->stub;
    int64_t result = co_await change_memory(process, stub, n, n, process.pid);
    if (stub.dead()) co_return;
    guard.release();
    co_await home_.taken_calls.return_from(thread, std::move(*taken), result);
}

// What the call will move, unmap or replace.
Task<paging::RangeLocks::Guard> MemoryCalls::lock_changed(HomeProcess& process, Notification n) {
    std::vector<Range> ranges;
    const MemoryCall kind = memory_call_of(n.number);
    const bool is_in_heap = n.args[0] >= process.break_begin;
    if (kind == MemoryCall::set_break && is_in_heap) {
        ranges.push_back({Address{n.args[0]}.page_end(), Address{process.break_end}.page_end()});
    } else if (kind != MemoryCall::protect && kind != MemoryCall::set_break) {
        ranges = hidden_by(process, n);
    }
    return home_.pager.ranges.lock(process.fragment, std::move(ranges));
}

namespace {
bool makes_writable(const Notification& n) {
    const bool aligned = n.args[0] % page_size == 0;
    return aligned && memory_call_of(n.number) == MemoryCall::protect && (n.args[2] & PROT_WRITE);
}
}  // namespace

Task<int64_t> MemoryCalls::make_change(HomeProcess& process, StubThread& stub, Notification n,
                                       Notification made, pid_t caller) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    if (is_guard_advice(n.number, n.args)) {
        co_return co_await home_.guard_pages.change(process, stub, n);
    }
    if (n.number == SYS_madvise) {
        co_return co_await home_.file_copies.discard_here(process, stub, n);
    }
    const int64_t refused = co_await refusal(process, stub, n, caller);
    if (refused != 0) co_return refused;
    bool several = n.number == SYS_mremap && split_move(fragment->space, n.args);
    if (several) co_return co_await move_parts(process, stub, n, caller);
    if (n.number == SYS_mremap && partly_locked_error(fragment->space, n.args) != 0) {
        co_return -EFAULT;
    }
    const bool locks = n.number == SYS_mmap && (n.args[3] & MAP_LOCKED);
    if (locks) made.args[3] &= ~uint64_t{MAP_LOCKED};
    if (n.number == SYS_mmap) made.args[0] = hint_beside_reserved(made.args);
    if (n.number == SYS_mmap && maps_growing(n.args)) made.args[3] &= ~uint64_t{MAP_GROWSDOWN};
    if (makes_writable(n)) {
        co_await home_.layouts.copy_files(fragment, pages_of(n.args[0], n.args[1]));
    }
    const std::vector<Range> hidden = hidden_by(process, n);
    auto alone = co_await lock_changed(process, n);
    if (stub.dead()) co_return -ESRCH;
    Range moving = n.number == SYS_mremap ? pages_of(n.args[0], n.args[1]) : Range{};
    if (!moving.empty()) co_await fragment->keep_apart(stub, moving, true);
    const uint64_t* a = made.args;
    auto changing = home_.pager.views.change(fragment->space, hidden);
    int64_t result = 0;
    if (n.number == SYS_mremap) {
        result = co_await remap_memory(*fragment, stub, a);
    } else {
        result = co_await stub.call(made.number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
    result = co_await place_elsewhere(*fragment, stub, made.number, a, result);
    if (stub.dead()) co_return result;
    if (memory_call_of(n.number) == MemoryCall::protect && failed(result)) {
        const Range asked = pages_of(n.args[0], n.args[1]);
        const Protection plan = protection_of(fragment->space, asked, n.args[2]);
        const Range part = plan.changed(asked, result);
        const int prot = static_cast<int>(n.args[2]);
        if (!part.empty()) {
            co_await home_.layouts.changes.protect(fragment, part, prot, directory_node);
        }
    }
    if (!failed(result)) co_await home_.layouts.note_call(process, n, result, caller);
    if (!failed(result) && n.number == SYS_mmap) {
        const Range mapped = pages_of(static_cast<uint64_t>(result), n.args[1]);
        home_.layouts.changes.lock_new(*fragment, mapped, locks);
    }
    if (moving.empty()) co_return result;
    bool done = !failed(result);
    Range moved = pages_of(static_cast<uint64_t>(result), n.args[2]);
    if (done) co_await fragment->keep_apart(stub, moved, false);
    bool kept = n.args[3] & MREMAP_DONTUNMAP;
    if (!done || kept) co_await fragment->keep_apart(stub, moving, false);
    co_return result;
}

// mmap for a thread at an acceptor. This kernel makes it, to map the file or shared memory; for
// other memory, to decide whether there may be more.
Task<void> MemoryCalls::map_for(HomeProcess& process, HomeThread& thread, Frame frame) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    std::shared_ptr<StubThread> stub = thread.stub;
    auto given = frame->session().getCall().getArgs();
    std::array<uint64_t, 6> args{given[0], given[1], given[2], given[3], given[4], given[5]};
    args[0] = hint_beside_reserved(args.data());
    const bool locks = args[3] & MAP_LOCKED;
    args[3] = flags_here(args[3]);
    uint64_t flags = args[3];
    if (maps_growing(args.data())) args[3] &= ~uint64_t{MAP_GROWSDOWN};  // monitor/paging/growth.h
    const Notification n = notification_of(SYS_mmap, given);
    const int64_t refused = co_await refusal(process, *stub, n, thread.tid);
    if (refused != 0) {
        home_.calls.reply(thread, refused);
        co_return;
    }
    int fd = flags & MAP_ANONYMOUS ? -1 : static_cast<int>(args[4]);
    SharedUse use;
    if (fd >= 0) use = home_.shared_memory.shared_use(process, SYS_mmap, args);
    co_await home_.shared_memory.before_use(use);
    AsyncMutex::Guard guard(nullptr);
    bool near_stack = concerns_stack(fragment->space, SYS_mmap, args.data());
    const Range replaced = flags & MAP_FIXED ? Range{{args[0]}, {args[0] + args[1]}} : Range{};
    if (near_stack || !replaced.empty()) guard = co_await home_.metadata.lock();
    co_await home_.shared_memory.save_shared(fragment->space, replaced);
    if (near_stack && !stub->dead()) {
        co_await home_.main_stack.make_room(process, fixed_place(SYS_mmap, args.data()));
    }
    auto alone = co_await home_.pager.ranges.lock(fragment, replaced);
    auto changing = home_.pager.views.change(fragment->space, std::span(&replaced, 1));
    int64_t result =
        co_await stub->call(SYS_mmap, args[0], args[1], args[2], args[3], args[4], args[5]);
    if (failed(result)) {
        if (near_stack && !stub->dead()) co_await home_.main_stack.fit(process);
        home_.calls.reply(thread, result);
        co_return;
    }
    if (!near_stack && replaced.empty()) guard = co_await home_.metadata.lock();
    result = co_await place_elsewhere(*fragment, *stub, SYS_mmap, args.data(), result);
    if (result < 0 || stub->dead()) {
        guard.release();
        home_.calls.reply(thread, result);
        co_return;
    }
    const std::string link = fd < 0 ? "" : fmt::format("/proc/{}/fd/{}", process.pid, fd);
    const uint64_t size = mapped_size(args.data(), link);
    if ((flags & MAP_TYPE) != MAP_PRIVATE) {
        Address at{static_cast<uint64_t>(result)};
        co_await home_.shared_memory.map_shared(process, at, size, static_cast<int>(args[2]), link);
        home_.layouts.changes.lock_new(*fragment, {at, at + size}, locks);
        alone.release();
        if (near_stack && !stub->dead()) co_await home_.main_stack.fit(process);
        guard.release();
        co_await home_.contended_memory.meet_external_sharers(false);
        home_.calls.reply(thread, result);
        co_return;
    }
    const Range range{{static_cast<uint64_t>(result)}, {static_cast<uint64_t>(result) + size}};
    if (fd < 0 && (flags & MAP_HUGETLB)) co_await make_small(*stub, args.data(), result);
    if (stub->dead()) co_return;
    args[3] = flags;
    bool ok = co_await note_private(process, args, range, fd, thread.node);
    if (!ok) {
        guard.release();
        home_.calls.reply(thread, -ENOMEM);
        co_return;
    }
    home_.layouts.changes.lock_new(*fragment, range, locks);
    if (near_stack && !stub->dead()) co_await home_.main_stack.fit(process);
    guard.release();
    home_.calls.reply(thread, result);
}

// Records a private mapping that map_for() has made. False if there is no memory for a copy of the
// file.
Task<bool> MemoryCalls::note_private(HomeProcess& process, SyscallArguments args, Range range,
                                     int fd, NodeId birth) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    Mapping m = private_mapping(args.data(), range);
    if (fd < 0) m.birth = birth;
    m.object = home_.layouts.new_object(m.birth);
    if (fd < 0) m.registered = home_.layouts.changes.watch_faults(*fragment, m.range);
    auto shown = co_await home_.layouts.show_file(process, m, process.pid, fd);
    if (!shown && (m.prot & PROT_WRITE)) co_return false;
    if (!shown) home_.failures.lost_track(fragment, shown.error());
    co_await home_.layouts.map_here(fragment, std::move(m));
    co_return true;
}

// A change that home's kernel has to allow.
Task<void> MemoryCalls::change_memory_for(HomeProcess& process, HomeThread& thread, Frame frame) {
    auto call = frame->session().getCall();
    const Notification n = notification_of(call.getNumber(), call.getArgs());
    std::shared_ptr<StubThread> stub = thread.stub;
    auto guard = co_await home_.metadata.lock();
    if (!stub->dead()) co_await save_hidden(process, n);
    if (stub->dead()) co_return;
    int64_t result = co_await change_memory(process, *stub, n, n, process.pid);
    if (stub->dead()) co_return;
    guard.release();
    home_.calls.reply(thread, result);
}

// `stub` makes the call, with the arguments in `made`; caller: the process or thread that called.
Task<int64_t> MemoryCalls::change_memory(HomeProcess& process, StubThread& stub, Notification n,
                                         Notification made, pid_t caller) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    int error = spell_out_growing(fragment->space, n.number, n.args);
    if (error == 0) error = spell_out_growing(fragment->space, made.number, made.args);
    if (error != 0) co_return -error;
    bool near_stack = concerns_stack(fragment->space, n.number, n.args);
    if (near_stack) {
        co_await home_.main_stack.make_room(process, fixed_place(n.number, n.args));
    }
    int64_t result = 0;
    if (reaches_across(n)) {
        result = co_await unmap_parts(process, stub, n, caller);
    } else {
        result = co_await make_change(process, stub, n, made, caller);
    }
    if (near_stack && !stub.dead()) co_await home_.main_stack.fit(process);
    co_return result;
}

// A munmap from below gpr's own range into it, or across it.
Task<int64_t> MemoryCalls::unmap_parts(HomeProcess& process, StubThread& stub, Notification n,
                                       pid_t caller) {
    Notification part = n;
    int64_t result = 0;
    for (Range range : beside_reserved(pages_of(n.args[0], n.args[1]))) {
        part.args[0] = range.begin.value;
        part.args[1] = range.size();
        if (result == 0) result = co_await make_change(process, stub, part, part, caller);
    }
    co_return result;
}

Task<int64_t> MemoryCalls::move_parts(HomeProcess& process, StubThread& stub, Notification n,
                                      pid_t caller) {
    auto split = split_move(process.fragment->space, n.args);
    Notification part = n;
    if (!split->cut.empty()) {
        part.number = SYS_munmap;
        part.args[0] = split->cut.begin.value;
        part.args[1] = split->cut.size();
        int64_t result = co_await change_memory(process, stub, part, part, caller);
        if (result < 0) co_return result;
        part.number = n.number;
    }
    for (const auto& args : split->moves) {
        std::copy(args.begin(), args.end(), part.args);
        int64_t result = co_await change_memory(process, stub, part, part, caller);
        if (result < 0 && result >= -4095) co_return result;
    }
    co_return static_cast<int64_t>(n.args[4]);
}

Task<void> MemoryCalls::brk_for(HomeProcess& process, HomeThread& thread, Frame frame) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    uint64_t wanted = frame->session().getCall().getArgs()[0];
    Notification n{};
    n.number = SYS_brk;
    n.args[0] = wanted;
    if (lock_error(process, n, thread.tid) != 0) wanted = 0;  // then the break stays
    std::shared_ptr<StubThread> stub = thread.stub;
    auto guard = co_await home_.metadata.lock();
    if (stub->dead()) co_return;
    n.args[0] = wanted;
    auto alone = co_await lock_changed(process, n);
    int64_t result = co_await stub->call(SYS_brk, wanted);
    if (stub->dead()) co_return;
    // Whoever makes the heap grow is about to fill it.
    if (result > 0) {
        co_await home_.layouts.note_break(process, static_cast<uint64_t>(result), thread.node);
    }
    if (stub->dead()) co_return;
    Promises promises;
    const bool is_shared = process.has_vfork_children || process.shares_memory_with;
    if (result > 0 && !is_shared && Delegations::all_at(process, thread)) {
        promises.break_object = home_.layouts.object_to_continue(process, thread.node);
    }
    guard.release();
    home_.calls.reply(thread, result, {}, promises);
}

}  // namespace gpr::home
