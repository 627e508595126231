#include "acceptor/worker/calls.h"

#include <sys/syscall.h>

#include "acceptor/worker/advice.h"
#include "acceptor/worker/affinity.h"
#include "acceptor/worker/breaks.h"
#include "acceptor/worker/call_rules.h"
#include "acceptor/worker/clones.h"
#include "acceptor/worker/closed_numbers.h"
#include "acceptor/worker/contents.h"
#include "acceptor/worker/crossings.h"
#include "acceptor/worker/delegations.h"
#include "acceptor/worker/device_memory.h"
#include "acceptor/worker/ends.h"
#include "acceptor/worker/epolls.h"
#include "acceptor/worker/files.h"
#include "acceptor/worker/filters.h"
#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/futexes.h"
#include "acceptor/worker/lookups.h"
#include "acceptor/worker/masks.h"
#include "acceptor/worker/memory_calls.h"
#include "acceptor/worker/mirrors.h"
#include "acceptor/worker/names.h"
#include "acceptor/worker/own_signals.h"
#include "acceptor/worker/polls.h"
#include "acceptor/worker/remaps.h"
#include "acceptor/worker/selects.h"
#include "acceptor/worker/timers.h"
#include "acceptor/worker/worker.h"
#include "monitor/node/advice.h"
#include "monitor/tracee/interrupted_call.h"
#include "monitor/tracee/reserved_range.h"
#include "monitor/tracee/sealed_memory.h"
#include "syscall/lookup_call.h"
#include "syscall/table.h"

namespace gpr::worker {

Task<void> Calls::handle_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    note_reported(thread.suspended, n.number, n.instruction_pointer);
    thread.stopped_calls++;
    if (installs_filter(n.number, n.args)) {
        co_await worker_.filters.filter_call(process, thread, n);
        co_return;
    }
    if (worker_.call_rules.made_by_rule(process, n)) co_return;
    if (auto answer = answer_about_reserved(n.number, n.args)) {
        process.notifier->reply_raw(n.id, *answer);
        co_return;
    }
    if (ClosedNumbers::is_about_one(process, n)) {
        process.notifier->reply_error(n.id, EBADF);
        co_return;
    }
    if (!process.delegated.empty()) {
        bool answered = co_await worker_.delegations.answer(process, thread, n);
        if (answered) co_return;
    }
    if (process.lookups && may_look_up(n.number)) {
        bool answered = co_await worker_.lookups.answer(process, thread, n);
        if (answered) co_return;
    }
    if (is_told_unasked(n.number)) {
        bool may = co_await may_change(process, n);
        if (!may) co_return;
    }
    if (n.number != SYS_restart_syscall) thread.waits_at.clear();
    if (process.fd_base != 0) {
        bool made = co_await worker_.names.named_call(process, thread, n);
        if (made) co_return;
    }
    co_await make_call(process, thread, n);
}

Task<void> Calls::make_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    Worker& w = worker_;
    const Row* row = find_row(n.number);
    switch (row ? row->handlers.there : AtAcceptor::as_placed) {
        using enum AtAcceptor;
        case clone: co_await w.clones.clone_call(process, thread, n); co_return;
        case affinity: co_await w.affinity.affinity_call(process, thread, n); co_return;
        case memory_policy: co_await w.affinity.policy_call(process, thread, n); co_return;
        case affinity_query:
            if (w.affinity.answer_here(process, thread, n)) co_return;
            break;
        case tid_address: co_await w.mirrors.tid_address_call(process, thread, n); co_return;
        case exit: co_await w.ends.exit_call(process, thread, n); co_return;
        case exit_group:
            w.contents.note_use(process);
            co_await w.forwarding.ask_home(process, thread, n, false);
            co_return;
        case futex: co_await w.futexes.futex_call(process, thread, n); co_return;
        case set_break: co_await w.breaks.break_call(process, thread, n); co_return;
        case map: co_await w.memory_calls.map_call(process, thread, n); co_return;
        case unmap: co_await w.memory_calls.unmap_call(process, thread, n); co_return;
        case no_key: process.notifier->reply_error(n.id, ENOSPC); co_return;
        case protect: co_await w.memory_calls.protect_call(process, thread, n); co_return;
        case advise: co_await w.advice.advise_call(process, thread, n); co_return;
        case residence: co_await w.advice.residence_call(process, thread, n); co_return;
        case sync:
            if (int error = sync_error(process.fragment->space, n.args)) {
                process.notifier->reply_error(n.id, error);
                co_return;
            }
            break;
        case unlock: w.advice.unlock_call(process, n); co_return;
        case move: co_await w.remaps.move_call(process, thread, n); co_return;
        case mirror: co_await w.mirrors.mirror(process, thread, n); co_return;
        case action: co_await w.mirrors.action_call(process, thread, n); co_return;
        case alt_stack: w.mirrors.alt_stack_call(process, thread, n); co_return;
        case process_state: {
            bool made = co_await w.mirrors.prctl_call(process, thread, n);
            if (made) co_return;
            break;
        }
        case cpu_state: co_await w.mirrors.arch_prctl_call(process, thread, n); co_return;
        case suspend: co_await w.masks.suspend_call(process, thread, n); co_return;
        case ioctl: co_await w.device_memory.ioctl_call(process, thread, n); co_return;
        case close_range: co_await w.files.close_range_call(process, thread, n); co_return;
        case wait: co_await w.polls.wait_call(process, thread, n); co_return;
        case select: co_await w.selects.select_call(process, thread, n); co_return;
        case send_message: co_await w.call_rules.send_message_call(process, thread, n); co_return;
        case pin: co_await w.device_memory.pin_call(process, thread, n); co_return;
        case epoll_control: co_await w.epolls.epoll_control(process, thread, n); co_return;
        case close: co_await reuse_call(process, thread, n, n.args[0]); co_return;
        case duplicate: co_await reuse_call(process, thread, n, n.args[1]); co_return;
        case limit:
            w.memory_calls.note_limit(process, n);
            co_await w.forwarding.forward(process, thread, n);
            co_return;
        case handler_return: co_await w.masks.handler_return(process, thread, n); co_return;
        case mask: co_await w.masks.mask_call(process, thread, n); co_return;
        case interval_timer: co_await w.timers.interval_timer_call(process, thread, n); co_return;
        case timer: co_await w.timers.timer_call(process, thread, n); co_return;
        case restart: co_await restart_call(process, thread, n); co_return;
        case forward:
        case as_placed: break;
    }
    co_await make_other_call(process, thread, n);
}

Task<void> Calls::make_other_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    if (worker_.own_signals.make(process, thread, n)) co_return;
    const Row* row = worker_.files.has_rules() ? find_row(n.number) : nullptr;
    if (row && row->path_argument() >= 0) {
        co_await worker_.files.path_call(process, thread, n, n.args[row->path_argument()]);
    } else {
        co_await worker_.forwarding.forward(process, thread, n);
    }
}

Task<void> Calls::reuse_call(RemoteProcess& process, RemoteThread& thread, Notification n,
                             uint64_t number) {
    co_await worker_.epolls.forget_epolls(process, number, number);
    co_await worker_.forwarding.forward(process, thread, n);
}

// Only the kernel that interrupted the call can continue it.
Task<void> Calls::restart_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    if (std::exchange(thread.restarts_at_home, false)) {
        co_await worker_.forwarding.forward(process, thread, n);
    } else if (thread.waits_at == std::vector<Address>{{n.args[0]}} &&
               worker_.futexes.waits_for_home(thread)) {
        n.number = SYS_futex;  // with its whole timeout, if that is relative
        co_await worker_.crossings.leave_at_call(thread, n);
    } else {
        process.notifier->let_it_run(n.id);
    }
}

// Waits until the call may change mappings. False if it has been answered, was interrupted, or its
// caller is gone.
Task<bool> Calls::may_change(RemoteProcess& process, Notification n) {
    pid_t pid = process.pid;
    auto notifier = process.notifier;
    if (!process.changes) process.changes = std::make_shared<ChangeWindow>(worker_.loop);
    auto window = process.changes;
    while (!window->take(worker_.link, pid)) {
        co_await window->moved();
        RemoteProcess* still = worker_.find_process(pid);
        if (!still || still->changes != window || !notifier->still_valid(n.id)) co_return false;
    }
    auto answer = answer_about_sealed(process.fragment->space, n.number, n.args);
    if (answer) notifier->reply_raw(n.id, *answer);
    co_return !answer;
}

}  // namespace gpr::worker
