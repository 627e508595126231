// System calls of program code that runs at home, as far as the acceptor must know of them.

#include <linux/sched.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <climits>
#include <cstring>
#include <filesystem>

#include "base/log.h"
#include "monitor/home/guard_pages.h"
#include "monitor/home/helper_calls.h"
#include "monitor/home/memory_limit.h"
#include "monitor/home/session.h"
#include "monitor/node/advice.h"
#include "monitor/node/huge_pages.h"
#include "monitor/node/mapping_move.h"
#include "monitor/node/mapping_news.h"
#include "monitor/node/memory_lock.h"
#include "monitor/node/placement.h"
#include "monitor/node/refusals.h"
#include "monitor/tracee/extended_state.h"
#include "monitor/tracee/reserved_range.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace gpr {

namespace {

Range pages_of(uint64_t begin, uint64_t size) {
    return {{begin & page_mask}, Address{begin + size}.page_end()};
}

bool failed(int64_t result) { return result < 0 && result >= -4095; }

// Of its own: growth.h.
bool grows_down(const Notification& mmap) {
    constexpr uint64_t anonymous = MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN;
    return (mmap.args[3] & (MAP_TYPE | MAP_ANONYMOUS | MAP_GROWSDOWN)) == anonymous;
}

bool drops_content(uint64_t advice) {
    return advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE ||
           advice == 24 /* MADV_DONTNEED_LOCKED */;
}

}  // namespace

void HomeSession::local_call(HomeProcess& process, HomeThread& thread, const Notification& n) {
    if (installs_filter(n.number, n.args)) {
        spawn(filter_call(process, thread, n));
        return;
    }
    if (auto answer = answer_about_reserved(n.number, n.args)) {
        notifier_->reply_raw(n.id, *answer);
        return;
    }
    switch (n.number) {
        case SYS_mmap:
        case SYS_munmap:
        case SYS_mprotect:
        case SYS_pkey_mprotect:
        case SYS_mremap:
        case SYS_remap_file_pages:
        case SYS_shmat:
        case SYS_shmdt:
        case SYS_brk: spawn(memory_call(process, thread, n)); return;
        case SYS_pkey_alloc: notifier_->reply_error(n.id, ENOSPC); return;
        case SYS_io_setup:
        case SYS_io_destroy: spawn(aio_call_here(thread, n)); return;
        case SYS_io_uring_register:
            if (!registers_buffers(n.args[1])) break;
            notifier_->reply_error(n.id, EOPNOTSUPP);
            return;
        case SYS_mlock:
        case SYS_mlock2:
        case SYS_munlock:
        case SYS_mlockall:
        case SYS_munlockall:
            notifier_->reply_raw(n.id, lock_memory(process, thread.tid, n.number, n.args));
            return;
        case SYS_madvise:
            if (int error = advice_error(process.fragment->space, n.args)) {
                notifier_->reply_error(n.id, error);
                return;
            }
            if (!drops_content(n.args[2]) && !is_guard_advice(n.number, n.args)) break;
            spawn(memory_call(process, thread, n));
            return;
        case SYS_userfaultfd: spawn(make_faultfd_here(process, thread, n)); return;
        case SYS_membarrier: tell_membarrier(process, n); break;
        case SYS_rt_sigaction: spawn(action_call(process, thread, n)); return;
        case SYS_rt_sigprocmask: spawn(mask_call(process, thread, n)); return;
        case SYS_rt_sigreturn: spawn(handler_return(process, thread, n)); return;
        case SYS_sched_setaffinity: affinity_call(process, thread, n); return;
        case SYS_set_tid_address:
            if (stats_.crossings > 0) {  // the acceptor's kernel may know of another place
                spawn(leave_at_call(process, thread, true));
                return;
            }
            thread.clear_tid = n.args[0];
            break;
        case SYS_mincore:
            // Without a crossing all is resident here, or nowhere, unless we say so (mlock).
            if (stats_.crossings == 0 && locked_bytes(process.fragment->space) == 0) break;
            spawn(leave_at_call(process, thread, true));
            return;
        case SYS_prctl:
            if (static_cast<int>(n.args[0]) != PR_GET_TID_ADDRESS || thread.clear_tid != 0) break;
            if (stats_.crossings == 0) break;
            spawn(leave_at_call(process, thread, true));
            return;
        case SYS_sigaltstack: thread.alt_stack_changed = true; break;
        case SYS_arch_prctl:
            if (!asks_for_state(n.number, n.args)) break;
            spawn(leave_at_call(process, thread, true));
            return;
        case SYS_clone:
        case SYS_fork:
        case SYS_clone3: spawn(fork_call(process, thread, n)); return;
        case SYS_getrusage:
        case SYS_times:
        case SYS_clock_gettime: spawn(usage_call_here(thread, n)); return;
        case SYS_truncate:
        case SYS_ftruncate: spawn(truncate_here(thread, n)); return;
        case SYS_setitimer:
        case SYS_getitimer:
        case SYS_timer_create:
        case SYS_timer_settime:
        case SYS_timer_gettime:
        case SYS_timer_getoverrun:
        case SYS_timer_delete:
        case SYS_getrlimit:
        case SYS_setrlimit:
        case SYS_prlimit64:
            if (must_widen(process, n.number, n.args)) {
                spawn(leave_at_call(process, thread, true));
                return;
            }
            if (n.number == SYS_getrlimit) break;
            spawn(timer_call_here(thread, n));
            return;
        case SYS_unshare:
        case SYS_wait4:
        case SYS_waitid: {
            bool waits = waits_for_children(n.number);
            bool asks_for_usage = waits && n.args[n.number == SYS_wait4 ? 3 : 4] != 0;
            // Without a crossing no child has used anything there.
            bool leaves = (asks_for_usage && stats_.crossings > 0) ||
                          (waits && orphaned_helpers_.expected()) || sees_helpers(n.number, n.args);
            if (!leaves) break;
            spawn(leave_at_call(process, thread, true));
            return;
        }
        case SYS_futex:
        case number_futex_wake:
        case number_futex_requeue: futex_call(process, thread, n); return;
        case SYS_msync:
            if (int error = sync_error(process.fragment->space, n.args)) {
                notifier_->reply_error(n.id, error);
                return;
            }
            [[fallthrough]];
        default: {
            bool may_be_faultfd = n.number == SYS_ioctl && is_faultfd_ioctl(n.args[1]);
            int fd = static_cast<int>(n.args[0]);
            auto faultfd = may_be_faultfd ? faultfd_of(process.pid, fd) : nullptr;
            if (faultfd) {
                spawn(ioctl_here(process, thread, n, std::move(faultfd)));
                return;
            }
            SyscallArguments args;
            std::copy(n.args, n.args + 6, args.begin());
            SharedUse use = shared_use(process, n.number, args);
            if (use.files.empty() && !memory_files_) break;
            spawn(use_call(thread, n, std::move(use)));
            return;
        }
    }
    notifier_->let_it_run(n.id);
}

// A call on a file that is mapped, or shows memory: what was written at the acceptor is in the file
// first, and what the call changes is not hidden by copies there.
Task<void> HomeSession::use_call(HomeThread& thread, Notification n, SharedUse use) {
    co_await before_use(use);
    if (memory_files_) {
        SyscallArguments args;
        std::copy(n.args, n.args + 6, args.begin());
        co_await bring_for_memory_file(*thread.process, n.number, args);
    }
    bool waits = n.number == SYS_fcntl || n.number == SYS_flock || n.number == SYS_ioctl;
    if (use.files.empty() || !use.modifies || waits) {
        notifier_->let_it_run(n.id);
        co_return;
    }
    if (!notifier_->still_valid(n.id)) co_return;
    auto taken = co_await take_call(thread);
    if (!taken) co_return;
    int64_t result = co_await make_call(*taken, n);
    if (taken->stub->dead()) co_return;
    co_await after_use(use);
    co_await return_from(thread, std::move(*taken), result);
}

int64_t HomeSession::lock_memory(HomeProcess& process, pid_t tid, uint32_t number,
                                 std::span<const uint64_t, 6> args) {
    AddressSpace& space = process.fragment->space;
    MemoryLock lock = memory_lock_of(number, args, space, lock_limit_of(tid));
    if (lock.error != 0) return -lock.error;
    mark_locked(space, lock);
    tell_locked(link_, process.pid, lock);
    return 0;
}

// Where the call takes shared memory out of sight here, or lets nobody write it any more.
std::vector<Range> HomeSession::hidden_by(HomeProcess& process, const Notification& n) {
    const Range named = pages_of(n.args[0], n.args[1]);
    switch (n.number) {
        case SYS_mmap: return n.args[3] & MAP_FIXED ? std::vector{named} : std::vector<Range>{};
        case SYS_munmap:
        case SYS_mprotect:
        case SYS_pkey_mprotect:
        case SYS_remap_file_pages: return {named};
        case SYS_mremap:
            if (!(n.args[3] & MREMAP_FIXED)) return {named};
            return {named, pages_of(n.args[4], n.args[2])};
        case SYS_shmdt: {
            Mapping* m = process.fragment->space.find({n.args[0]});
            bool begins = m && m->shared && m->range.begin.value == n.args[0];
            return begins ? std::vector{m->range} : std::vector<Range>{};
        }
        default: return {};
    }
}

// What was written there is in the objects before the call.
Task<void> HomeSession::save_hidden(HomeProcess& process, Notification n) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    for (Range range : hidden_by(process, n)) co_await save_shared(fragment->space, range);
}

// The thread makes the call in its stub, where no other thread's change comes between the call
// and what we note of it.
Task<void> HomeSession::memory_call(HomeProcess& process, HomeThread& thread, Notification n) {
    auto guard = co_await metadata_.lock();
    if (!notifier_->still_valid(n.id)) co_return;  // a signal came: it will call again
    std::shared_ptr<Fragment> fragment = process.fragment;
    co_await save_hidden(process, n);
    auto taken = co_await take_call(thread);
    if (!taken) co_return;
    StubThread& stub = *taken->stub;
    int64_t result = co_await change_memory(process, stub, n, n, process.pid);
    if (stub.dead()) co_return;
    guard.release();
    co_await return_from(thread, std::move(*taken), result);
}

Task<int64_t> HomeSession::make_change(HomeProcess& process, StubThread& stub, Notification n,
                                       Notification made, pid_t caller) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    if (is_guard_advice(n.number, n.args)) {
        co_return co_await GuardPages::change(*this, process, stub, n);
    }
    if (n.number == SYS_madvise) co_return co_await discard_here(process, stub, n);
    if (n.number == SYS_mmap && (n.args[3] & MAP_LOCKED)) {
        co_return co_await map_locked(process, stub, n, caller);
    }
    if (n.number == SYS_mremap) {
        int error = locked_growth_error(fragment->space, n.args, lock_limit_of(caller));
        if (error != 0) co_return -error;
    }
    bool several = n.number == SYS_mremap && split_move(fragment->space, n.args);
    if (several) co_return co_await move_parts(process, stub, n, caller);
    if (n.number == SYS_mmap) made.args[0] = hint_beside_reserved(made.args);
    if (n.number == SYS_mmap && grows_down(n)) made.args[3] &= ~uint64_t{MAP_GROWSDOWN};
    Range moving = n.number == SYS_mremap ? pages_of(n.args[0], n.args[1]) : Range{};
    if (!moving.empty()) co_await fragment->keep_apart(stub, moving, true);
    const uint64_t* a = made.args;
    auto changing = pager_.change_views(fragment->space, hidden_by(process, n));
    int64_t result = n.number == SYS_mremap
                         ? co_await remap_memory(*fragment, stub, a)
                         : co_await stub.call(made.number, a[0], a[1], a[2], a[3], a[4], a[5]);
    result = co_await place_elsewhere(*fragment, stub, made.number, a, result);
    if (stub.dead()) co_return result;
    bool protects = n.number == SYS_mprotect || n.number == SYS_pkey_mprotect;
    if (protects && result == -ENOMEM) {  // the kernel stops at the first gap, if there is one
        Address begin{n.args[0]};
        Address until = fragment->space.mapped_until(begin);
        bool gap = until > begin && until < begin + n.args[1];
        n.args[1] = until - begin;
        if (gap) co_await note_protect(process, n);
    }
    if (!failed(result)) co_await note_call(process, n, result, caller);
    if (moving.empty()) co_return result;
    bool done = !failed(result);
    Range moved = pages_of(static_cast<uint64_t>(result), n.args[2]);
    if (done) co_await fragment->keep_apart(stub, moved, false);
    bool kept = n.args[3] & MREMAP_DONTUNMAP;
    if (!done || kept) co_await fragment->keep_apart(stub, moving, false);
    co_return result;
}

Task<void> HomeSession::note_call(HomeProcess& process, Notification n, int64_t result,
                                  pid_t caller) {
    switch (n.number) {
        case SYS_mmap: co_await note_mmap(process, n, static_cast<uint64_t>(result), caller); break;
        case SYS_munmap: note_unmapped(process, pages_of(n.args[0], n.args[1])); break;
        case SYS_mprotect:
        case SYS_pkey_mprotect: co_await note_protect(process, n); break;
        case SYS_mremap:
            if (n.args[1] != 0) {
                note_move(process, n, static_cast<uint64_t>(result));
            } else if (const Mapping* old = process.fragment->space.find({n.args[0]})) {
                // A second mapping of the same shared memory.
                map_shared(process, {static_cast<uint64_t>(result)}, n.args[2], old->prot);
            }
            break;
        case SYS_remap_file_pages: note_remapped(process, pages_of(n.args[0], n.args[1])); break;
        case SYS_brk: note_break(process, static_cast<uint64_t>(result)); break;
        case SYS_shmat: note_attached(process, {static_cast<uint64_t>(result)}); break;
        case SYS_shmdt:
            for (Range range : hidden_by(process, n)) note_unmapped(process, range);
            break;
        default: break;
    }
}

// caller: whose descriptor it is; a guest has its own.
Task<void> HomeSession::note_mmap(HomeProcess& process, Notification n, uint64_t begin,
                                  pid_t caller) {
    int fd = n.args[3] & MAP_ANONYMOUS ? -1 : static_cast<int>(n.args[4]);
    const std::string link = fd < 0 ? "" : fmt::format("/proc/{}/fd/{}", caller, fd);
    const uint64_t size = mapped_size(n.args, link);
    if ((n.args[3] & MAP_TYPE) != MAP_PRIVATE) {
        map_shared(process, {begin}, size, static_cast<int>(n.args[2]), link);
        co_return;
    }
    if (fd < 0 && (n.args[3] & MAP_HUGETLB)) {
        auto mapped = static_cast<int64_t>(begin);
        co_await make_small(process.fragment->executor(), n.args, mapped);
    }
    Mapping m;
    m.range = {{begin}, {begin + size}};
    m.prot = static_cast<int>(n.args[2]);
    m.file = !(n.args[3] & MAP_ANONYMOUS);
    m.grows_down = grows_down(n);
    m.object = new_object(directory_node);
    if (m.file) m.backing = Backing::native_file;
    bool copied = m.file && (m.prot & PROT_WRITE);
    if (copied) m.content = private_files_.of_descriptor(caller, fd);
    m.content_offset = n.args[5];
    Result<void> made;
    if (copied) {
        made = co_await make_anonymous(process, m);
    } else if (m.file) {
        std::error_code ignored;
        std::string path = std::filesystem::read_symlink(link, ignored).string();
        made = co_await place_code(process, m, path, n.args[5]);
    }
    if (!made) {
        abandon(made.error().message());
        co_return;
    }
    auto replaced = process.fragment->space.map(m);
    pager_.discard_unmapped(process.fragment->space, replaced);
    for (const Mapping& old : replaced) process.fragment->wake(old.range);
    announce(process, m);
    forget_unseen(replaced);
    co_await pager_.forget_trapped(replaced);
}

void HomeSession::note_unmapped(HomeProcess& process, Range range) {
    auto gone = process.fragment->space.unmap(range);
    pager_.discard_unmapped(process.fragment->space, gone);
    for (const Mapping& old : gone) process.fragment->wake(old.range);
    tell_unmapped(link_, process.pid, range);
    forget_unseen(gone);
}

Task<void> HomeSession::note_protect(HomeProcess& process, Notification n) {
    Range range = pages_of(n.args[0], n.args[1]);
    int prot = static_cast<int>(n.args[2]);
    std::vector<Address> to_copy;
    // It may change: it runs anywhere.
    if (prot & PROT_WRITE) co_await pager_.stop_trapping(process.fragment, range);
    process.fragment->space.for_each(range, [&](Mapping& m) {
        m.prot = prot;
        note_protection(m);
        if (prot & PROT_WRITE) m.functions.reset();
        if (m.backing == Backing::native_file && m.file && !m.shared && (prot & PROT_WRITE)) {
            to_copy.push_back(m.range.begin);
        }
    });
    for (Address at : to_copy) {
        Mapping* m = process.fragment->space.find(at);
        auto made = co_await make_writable(process, *m);
        if (!made) abandon(made.error().message());
    }
    tell_protected(link_, process.pid, range, prot);
}

void HomeSession::note_move(HomeProcess& process, const Notification& n, uint64_t to_address) {
    Fragment& fragment = *process.fragment;
    Range from = pages_of(n.args[0], n.args[1]);
    Range to = pages_of(to_address, n.args[2]);
    ObjectId kept = 0;
    if (n.args[3] & MREMAP_DONTUNMAP) {
        Mapping* old = fragment.space.find(from.begin);
        kept = old && old->shared ? old->object : next_object_++;
    }
    auto gone = move_views(process, from, to, kept, directory_node);
    fragment.wake(from);
    tell_moved(link_, process.pid, from, to, kept);
    forget_unseen(gone);
}

void HomeSession::note_break(HomeProcess& process, uint64_t end) {
    Address old_end = Address{process.break_end}.page_end();
    Address new_end = Address{end}.page_end();
    process.break_end = end;
    if (new_end > old_end) {
        Mapping m;
        m.range = {old_end, new_end};
        m.prot = PROT_READ | PROT_WRITE;
        m.object = new_object(directory_node);
        pager_.discard_unmapped(process.fragment->space, process.fragment->space.map(m));
        announce(process, m);
    } else if (new_end < old_end) {
        note_unmapped(process, {new_end, old_end});
    }
}

// The kernel copies what is here, and the copy is not watched: what is missing would be zeros.
Task<void> HomeSession::fork_call(HomeProcess& process, HomeThread& thread, Notification n) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    uint64_t flags = n.args[0];
    thread.clears_childs_tid = n.args[3];
    if (n.number == SYS_clone3) {
        clone_args args{};
        Address at{n.args[0]};
        auto bytes = std::as_writable_bytes(std::span(&args, 1)).first(CLONE_ARGS_SIZE_VER0);
        bool readable = co_await pager_.read(*fragment, at, bytes);
        flags = readable ? args.flags : CLONE_VM;  // the kernel will refuse it
        thread.clears_childs_tid = args.child_tid;
    }
    if (flags & CLONE_UNTRACED) {  // it would be born behind our back: there the call is ours
        co_await leave_at_call(process, thread, true);
        co_return;
    }
    if (!(flags & CLONE_CHILD_CLEARTID)) thread.clears_childs_tid = 0;
    if (n.number == SYS_fork || !(flags & CLONE_VM)) {
        if (!co_await begin_fork(fragment, thread.tid)) co_return;
    }
    notifier_->let_it_run(n.id);
}

// told: the acceptor, which asked, has done the same.
void HomeSession::note_modes(HomeThread& thread, uint64_t number, const uint64_t* args, bool told) {
    if (number == SYS_prctl) orphaned_helpers_.note_prctl(args);
    bool changed = thread.cpu_modes.note(number, args);
    if (changed && told) thread.cpu_modes_there = thread.cpu_modes;
}

void HomeSession::tell_membarrier(HomeProcess& process, const Notification& n) {
    if (!process.started_remotely) return;
    FrameBuilder frame;
    auto wanted = frame.session().initMembarrier();
    wanted.setPid(process.pid);
    wanted.setCommand(static_cast<uint32_t>(n.args[0]));
    wanted.setFlags(static_cast<uint32_t>(n.args[1]));
    link_.send(frame, Priority::urgent);
}

}  // namespace gpr
