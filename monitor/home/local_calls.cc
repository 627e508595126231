#include "monitor/home/local_calls.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "monitor/home/acceptor_files.h"
#include "monitor/home/affinity.h"
#include "monitor/home/aio.h"
#include "monitor/home/cpu_timing.h"
#include "monitor/home/crossings.h"
#include "monitor/home/faultfds.h"
#include "monitor/home/fd_names.h"
#include "monitor/home/filters.h"
#include "monitor/home/forks_at_home.h"
#include "monitor/home/futexes.h"
#include "monitor/home/helper_calls.h"
#include "monitor/home/home.h"
#include "monitor/home/memory_calls.h"
#include "monitor/home/memory_files.h"
#include "monitor/home/memory_limit.h"
#include "monitor/home/proc_files.h"
#include "monitor/home/remote_usage.h"
#include "monitor/home/shared_memory.h"
#include "monitor/home/signal_actions.h"
#include "monitor/home/taken_calls.h"
#include "monitor/home/trap_state.h"
#include "monitor/home/truncation.h"
#include "monitor/node/advice.h"
#include "monitor/node/guard_advice.h"
#include "monitor/node/memory_lock.h"
#include "monitor/node/mirrored_call.h"
#include "monitor/node/refusals.h"
#include "monitor/paging/program_faultfd.h"
#include "monitor/rules/chaos.h"
#include "monitor/tracee/extended_state.h"
#include "monitor/tracee/reserved_range.h"
#include "syscall/table.h"

namespace gpr::home {

namespace {

// Shared memory that a device may pin must be the acceptor's, which decides that where the call is
// made: docs/decisions/0070-memory-for-devices.md
bool may_be_for_a_device(const HomeProcess& process, const Notification& n) {
    constexpr uint64_t kinds = MAP_TYPE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_GROWSDOWN;
    return process.uses_files_of != directory_node && n.number == SYS_mmap &&
           (n.args[3] & kinds) == (MAP_SHARED | MAP_ANONYMOUS);
}

}  // namespace

void LocalCalls::on_call(HomeProcess& process, HomeThread& thread, const Notification& n) {
    home_.pager.on_progress(n.tid);
    bool forks = n.number == SYS_fork || n.number == SYS_clone || n.number == SYS_clone3;
    // The fork has failed.
    if (thread.fork.ready && !forks) home_.forks_at_home.end_fork(thread);
    bool by_name = home_.fd_names.concerns(process, n.number, n.args);
    if (by_name) home_.fd_names.tell(process);
    auto owner = home_.acceptor_files.owner_of(n);
    if (!owner && may_be_for_a_device(process, n)) owner = process.uses_files_of;
    if (owner || by_name) {
        NodeId to = owner ? *owner : home_.fd_names.owner_of(process, n);
        spawn(home_.crossings.leave_at_call(process, thread, to, true));
        return;
    }
    if (home_.chaos && may_leave_at_call(n.number) && home_.chaos->leaves_at_call()) {
        NodeId to = home_.chaos->acceptor(home_.acceptors.size());
        spawn(home_.crossings.leave_at_call(process, thread, to, false));
        return;
    }
    const Row* row = find_row(n.number);
    if (row && row->polls() && home_.acceptor_files.has_fds()) {
        spawn(home_.acceptor_files.poll_call(process, thread, n));
    } else if (row && (home_.acceptor_files.paths().empty() ? row->opens_by_name()
                                                            : row->path_argument() >= 0)) {
        spawn(home_.acceptor_files.path_call(process, thread, n, n.args[row->path_argument()]));
    } else {
        local_call(process, thread, n);
    }
}

void LocalCalls::local_call(HomeProcess& process, HomeThread& thread, const Notification& n) {
    if (installs_filter(n.number, n.args)) {
        spawn(home_.filters.filter_call(process, thread, n));
        return;
    }
    if (auto answer = answer_about_reserved(n.number, n.args)) {
        home_.notifier->reply_raw(n.id, *answer);
        return;
    }
    if (!is_answered(process, thread, n)) home_.notifier->let_it_run(n.id);
}

namespace {

// The main thread's clear_child_tid, of a process that was attached, until the thread crosses.
bool is_known_there(const HomeProcess& process, const HomeThread& thread) {
    return process.started_remotely && !process.new_image && thread.tid == process.pid &&
           thread.counts.departures == 0;
}

}  // namespace

bool LocalCalls::is_answered(HomeProcess& process, HomeThread& thread, const Notification& n) {
    Home& h = home_;
    const Row* row = find_row(n.number);
    switch (row ? row->handlers.here : AtHome::as_placed) {
        using enum AtHome;
        case memory: spawn(h.memory_calls.memory_call(process, thread, n)); return true;
        case no_key: h.notifier->reply_error(n.id, ENOSPC); return true;
        case aio: spawn(h.aio.aio_call_here(thread, n)); return true;
        case ring:
            if (!registers_buffers(n.args[1])) return false;
            h.notifier->reply_error(n.id, EOPNOTSUPP);
            return true;
        case lock:
            h.notifier->reply_raw(
                n.id, h.memory_calls.lock_memory(process, thread.tid, n.number, n.args));
            return true;
        case advise: return advise_call(process, thread, n);
        case faultfd: spawn(h.faultfds.make_faultfd_here(process, thread, n)); return true;
        case barrier: tell_mirrored(process, n.number, n.args); return false;
        case action: spawn(h.signal_actions.action_call(process, thread, n)); return true;
        case mask: spawn(h.trap_state.mask_call(process, thread, n)); return true;
        case handler_return: spawn(h.trap_state.handler_return(process, thread, n)); return true;
        case affinity: h.affinity.affinity_call(process, thread, n); return true;
        case memory_policy: return h.affinity.policy_call(process, thread, n);
        case tid_address:
            // After a crossing the acceptor's kernel may have another address.
            if (h.stats.crossings > 0) return leave(process, thread);
            thread.clear_tid = n.args[0];
            return false;
        case residence:
            // Before the first crossing the kernel's answer is right, except for memory that we say
            // is locked.
            if (h.stats.crossings == 0 && locked_bytes(process.fragment->space) == 0) return false;
            return leave(process, thread);
        case process_state:
            if (static_cast<int>(n.args[0]) != PR_GET_TID_ADDRESS) return false;
            if (is_known_there(process, thread)) return leave(process, thread);
            if (thread.clear_tid != 0 || h.stats.crossings == 0) return false;
            return leave(process, thread);
        case alt_stack: thread.note_alt_stack_changed(); return false;
        case cpu_state: return asks_for_state(n.number, n.args) && leave(process, thread);
        case fork: spawn(h.forks_at_home.fork_call(process, thread, n)); return true;
        case usage: spawn(h.remote_usage.usage_call_here(thread, n)); return true;
        case truncate: spawn(h.truncation.truncate_here(thread, n)); return true;
        case limit_query: return must_widen(process, n.number, n.args) && leave(process, thread);
        case limit:
        case timer:
            if (must_widen(process, n.number, n.args)) return leave(process, thread);
            spawn(h.cpu_timing.timer_call_here(thread, n));
            return true;
        case children: return asks_of_children(n) && leave(process, thread);
        case futex: h.futexes.futex_call(process, thread, n); return true;
        case ioctl: return ioctl_call(process, thread, n) || uses_shared(process, thread, n);
        case sync:
            if (int error = sync_error(process.fragment->space, n.args)) {
                h.notifier->reply_error(n.id, error);
                return true;
            }
            return uses_shared(process, thread, n);
        case let_run:
        case as_placed: return uses_shared(process, thread, n);
    }
    return false;
}

bool LocalCalls::leave(HomeProcess& process, HomeThread& thread) {
    spawn(home_.crossings.leave_at_call(process, thread, thread.last_away, true));
    return true;
}

bool LocalCalls::advise_call(HomeProcess& process, HomeThread& thread, const Notification& n) {
    if (int error = advice_error(process.fragment->space, n.args)) {
        home_.notifier->reply_error(n.id, error);
        return true;
    }
    if (is_populating(n.args[2])) {
        spawn(populate_call(thread, n));
        return true;
    }
    if (!drops_content(n.args[2]) && !is_guard_advice(n.number, n.args)) return false;
    spawn(home_.memory_calls.memory_call(process, thread, n));
    return true;
}

// A page beyond the end of a file is poisoned in this kernel, and the call's error would show that.
Task<void> LocalCalls::populate_call(HomeThread& thread, Notification n) {
    auto taken = co_await home_.taken_calls.take_call(thread);
    if (!taken) co_return;
    int64_t result = co_await TakenCalls::make_call(*taken, n);
    if (taken->stub->dead()) co_return;
    if (result == -EHWPOISON) result = -EFAULT;
    co_await home_.taken_calls.return_from(thread, std::move(*taken), result);
}

// Whether the call asks for what only the acceptor knows of children, or could reveal our helpers.
bool LocalCalls::asks_of_children(const Notification& n) const {
    bool waits = waits_for_children(n.number);
    bool asks_for_usage = waits && n.args[n.number == SYS_wait4 ? 3 : 4] != 0;
    // Before the first crossing no child has used anything there.
    return (asks_for_usage && home_.stats.crossings > 0) ||
           (waits && home_.orphaned_helpers.expected()) || sees_helpers(n.number, n.args);
}

bool LocalCalls::ioctl_call(HomeProcess& process, HomeThread& thread, const Notification& n) {
    if (home_.proc_files.queries.is_query(process.pid, n.args[0], n.args[1])) {
        spawn(home_.proc_files.queries.answer_here(process, thread, n));
        return true;
    }
    if (!is_faultfd_ioctl(n.args[1])) return false;
    auto faultfd = home_.faultfds.faultfd_of(process.pid, static_cast<int>(n.args[0]));
    if (!faultfd) return false;
    spawn(home_.faultfds.ioctl_here(process, thread, n, std::move(faultfd)));
    return true;
}

bool LocalCalls::uses_shared(HomeProcess& process, HomeThread& thread, const Notification& n) {
    SyscallArguments args;
    std::copy(n.args, n.args + 6, args.begin());
    SharedUse use = home_.shared_memory.shared_use(process, n.number, args);
    if (use.files.empty() && !home_.memory_files.in_use()) return false;
    spawn(use_call(thread, n, std::move(use)));
    return true;
}

// A call on a file that is mapped, or on a file that shows memory. First the file gets what was
// written at the acceptor; afterwards no copy there may hide what the call has changed.
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
    co_await home_.taken_calls.return_from(thread, std::move(*taken), result);
}

// told: the thread's acceptor has made the call, too.
void LocalCalls::note_modes(HomeThread& thread, uint64_t number, const uint64_t* args, bool told) {
    if (number == SYS_prctl) {
        home_.orphaned_helpers.note_prctl(args);
        if (args[0] == PR_SET_CHILD_SUBREAPER) thread.process->is_reaper = args[1] != 0;
    }
    bool changed = thread.cpu_modes.note(number, args);
    if (changed && told) thread.twin(thread.node).cpu_modes = thread.cpu_modes;
}

void LocalCalls::tell_mirrored(HomeProcess& process, uint32_t number, const uint64_t* args,
                               NodeId from) {
    if (!process.started_remotely || !is_mirrored_call(number, args)) return;
    FrameBuilder frame;
    auto call = frame.session().initMirror();
    call.setPid(process.pid);
    call.setNumber(number);
    auto list = call.initArgs(2);
    list.set(0, args[0]);
    list.set(1, args[1]);
    home_.acceptors.send(frame, from);
}

}  // namespace gpr::home
