#include "monitor/home/local_calls.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "monitor/home/helper_calls.h"
#include "monitor/home/home.h"
#include "monitor/home/memory_limit.h"
#include "monitor/node/advice.h"
#include "monitor/node/guard_advice.h"
#include "monitor/node/memory_lock.h"
#include "monitor/node/refusals.h"
#include "monitor/paging/program_faultfd.h"
#include "monitor/tracee/extended_state.h"
#include "monitor/tracee/reserved_range.h"

namespace gpr::home {

namespace {

bool drops_content(uint64_t advice) {
    return advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE ||
           advice == 24 /* MADV_DONTNEED_LOCKED */;
}

}  // namespace

void LocalCalls::local_call(HomeProcess& process, HomeThread& thread, const Notification& n) {
    if (installs_filter(n.number, n.args)) {
        spawn(home_.filters.filter_call(process, thread, n));
        return;
    }
    if (auto answer = answer_about_reserved(n.number, n.args)) {
        home_.notifier->reply_raw(n.id, *answer);
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
        case SYS_brk: spawn(home_.memory_calls.memory_call(process, thread, n)); return;
        case SYS_pkey_alloc: home_.notifier->reply_error(n.id, ENOSPC); return;
        case SYS_io_setup:
        case SYS_io_destroy: spawn(home_.aio.aio_call_here(thread, n)); return;
        case SYS_io_uring_register:
            if (!registers_buffers(n.args[1])) break;
            home_.notifier->reply_error(n.id, EOPNOTSUPP);
            return;
        case SYS_mlock:
        case SYS_mlock2:
        case SYS_munlock:
        case SYS_mlockall:
        case SYS_munlockall:
            home_.notifier->reply_raw(
                n.id, home_.memory_calls.lock_memory(process, thread.tid, n.number, n.args));
            return;
        case SYS_madvise:
            if (int error = advice_error(process.fragment->space, n.args)) {
                home_.notifier->reply_error(n.id, error);
                return;
            }
            if (!drops_content(n.args[2]) && !is_guard_advice(n.number, n.args)) break;
            spawn(home_.memory_calls.memory_call(process, thread, n));
            return;
        case SYS_userfaultfd: spawn(home_.faultfds.make_faultfd_here(process, thread, n)); return;
        case SYS_membarrier: tell_membarrier(process, n); break;
        case SYS_rt_sigaction: spawn(home_.signal_actions.action_call(process, thread, n)); return;
        case SYS_rt_sigprocmask: spawn(home_.trap_state.mask_call(process, thread, n)); return;
        case SYS_rt_sigreturn: spawn(home_.trap_state.handler_return(process, thread, n)); return;
        case SYS_sched_setaffinity: home_.affinity.affinity_call(process, thread, n); return;
        case SYS_set_tid_address:
            if (home_.stats.crossings > 0) {  // the acceptor's kernel may know of another place
                spawn(home_.crossings.leave_at_call(process, thread, true));
                return;
            }
            thread.clear_tid = n.args[0];
            break;
        case SYS_mincore:
            // Without a crossing all is resident here, or nowhere, unless we say so (mlock).
            if (home_.stats.crossings == 0 && locked_bytes(process.fragment->space) == 0) break;
            spawn(home_.crossings.leave_at_call(process, thread, true));
            return;
        case SYS_prctl:
            if (static_cast<int>(n.args[0]) != PR_GET_TID_ADDRESS || thread.clear_tid != 0) break;
            if (home_.stats.crossings == 0) break;
            spawn(home_.crossings.leave_at_call(process, thread, true));
            return;
        case SYS_sigaltstack: thread.alt_stack_changed = true; break;
        case SYS_arch_prctl:
            if (!asks_for_state(n.number, n.args)) break;
            spawn(home_.crossings.leave_at_call(process, thread, true));
            return;
        case SYS_clone:
        case SYS_fork:
        case SYS_clone3: spawn(home_.forks_at_home.fork_call(process, thread, n)); return;
        case SYS_getrusage:
        case SYS_times:
        case SYS_clock_gettime: spawn(home_.remote_usage.usage_call_here(thread, n)); return;
        case SYS_truncate:
        case SYS_ftruncate: spawn(home_.truncation.truncate_here(thread, n)); return;
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
                spawn(home_.crossings.leave_at_call(process, thread, true));
                return;
            }
            if (n.number == SYS_getrlimit) break;
            spawn(home_.cpu_timing.timer_call_here(thread, n));
            return;
        case SYS_unshare:
        case SYS_wait4:
        case SYS_waitid: {
            bool waits = waits_for_children(n.number);
            bool asks_for_usage = waits && n.args[n.number == SYS_wait4 ? 3 : 4] != 0;
            // Without a crossing no child has used anything there.
            bool leaves = (asks_for_usage && home_.stats.crossings > 0) ||
                          (waits && home_.orphaned_helpers.expected()) ||
                          sees_helpers(n.number, n.args);
            if (!leaves) break;
            spawn(home_.crossings.leave_at_call(process, thread, true));
            return;
        }
        case SYS_futex:
        case number_futex_wake:
        case number_futex_requeue: home_.futexes.futex_call(process, thread, n); return;
        case SYS_msync:
            if (int error = sync_error(process.fragment->space, n.args)) {
                home_.notifier->reply_error(n.id, error);
                return;
            }
            [[fallthrough]];
        default: {
            bool may_be_faultfd = n.number == SYS_ioctl && is_faultfd_ioctl(n.args[1]);
            int fd = static_cast<int>(n.args[0]);
            auto faultfd = may_be_faultfd ? home_.faultfds.faultfd_of(process.pid, fd) : nullptr;
            if (faultfd) {
                spawn(home_.faultfds.ioctl_here(process, thread, n, std::move(faultfd)));
                return;
            }
            SyscallArguments args;
            std::copy(n.args, n.args + 6, args.begin());
            SharedUse use = home_.shared_memory.shared_use(process, n.number, args);
            if (use.files.empty() && !home_.memory_files.in_use()) break;
            spawn(use_call(thread, n, std::move(use)));
            return;
        }
    }
    home_.notifier->let_it_run(n.id);
}

// A call on a file that is mapped, or shows memory: what was written at the acceptor is in the file
// first, and what the call changes is not hidden by copies there.
Task<void> LocalCalls::use_call(HomeThread& thread, Notification n, SharedUse use) {
    co_await home_.shared_memory.before_use(use);
    if (home_.memory_files.in_use()) {
        SyscallArguments args;
        std::copy(n.args, n.args + 6, args.begin());
        co_await home_.memory_files.bring_for_memory_file(*thread.process, n.number, args);
    }
    bool waits = n.number == SYS_fcntl || n.number == SYS_flock || n.number == SYS_ioctl;
    if (use.files.empty() || !use.modifies || waits) {
        home_.notifier->let_it_run(n.id);
        co_return;
    }
    if (!home_.notifier->still_valid(n.id)) co_return;
    auto taken = co_await home_.taken_calls.take_call(thread);
    if (!taken) co_return;
    int64_t result = co_await TakenCalls::make_call(*taken, n);
    if (taken->stub->dead()) co_return;
    co_await home_.shared_memory.after_use(use);
    co_await TakenCalls::return_from(thread, std::move(*taken), result);
}

// told: the acceptor, which asked, has done the same.
void LocalCalls::note_modes(HomeThread& thread, uint64_t number, const uint64_t* args, bool told) {
    if (number == SYS_prctl) home_.orphaned_helpers.note_prctl(args);
    bool changed = thread.cpu_modes.note(number, args);
    if (changed && told) thread.cpu_modes_there = thread.cpu_modes;
}

void LocalCalls::tell_membarrier(HomeProcess& process, const Notification& n) {
    if (!process.started_remotely) return;
    FrameBuilder frame;
    auto wanted = frame.session().initMembarrier();
    wanted.setPid(process.pid);
    wanted.setCommand(static_cast<uint32_t>(n.args[0]));
    wanted.setFlags(static_cast<uint32_t>(n.args[1]));
    home_.acceptor.link.send(frame, Priority::urgent);
}

}  // namespace gpr::home
