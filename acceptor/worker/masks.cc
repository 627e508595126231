#include "acceptor/worker/masks.h"

#include <sys/syscall.h>

#include <csignal>
#include <cstring>

#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/signals.h"
#include "acceptor/worker/threads.h"
#include "acceptor/worker/worker.h"
#include "monitor/tracee/fault_origin.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/signal_frame.h"
#include "syscall/table.h"

namespace gpr::worker {

Task<void> Masks::mask_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    worker_.counts.native++;
    bool changes = n.args[1] != 0;
    if (changes) {
        auto next = co_await mask_after(process, thread, n);
        if (!co_await change_mask(process, thread, n, n)) co_return;
        thread.mask = thread.mask_at_home = next;
    }
    process.notifier->let_it_run(n.id);
}

Task<std::optional<uint64_t>> Masks::mask_after(RemoteProcess& process, const RemoteThread& thread,
                                                Notification n) {
    const pid_t host_tid = thread.host_tid;
    const std::optional<uint64_t> before = thread.mask;
    std::shared_ptr<Fragment> fragment = process.fragment;
    uint64_t set = 0;
    auto bytes = std::as_writable_bytes(std::span(&set, 1));
    const Address at{n.args[1]};
    bool read = n.args[3] == sizeof set;
    if (read) read = co_await worker_.pager.memory.read(*fragment, at, bytes);
    const int how = static_cast<int>(n.args[0]);
    if (read && how == SIG_SETMASK) co_return set;
    const uint64_t now = before ? *before : trace::signal_set(host_tid, "SigBlk:");
    if (!read) co_return now;
    co_return how == SIG_BLOCK ? now | set : how == SIG_UNBLOCK ? now & ~set : now;
}

// Home changes the mask first: a signal that is pending there and no longer blocked comes with the
// answer, before the thread continues. False if a signal has to be handled first; then the thread
// calls again.
Task<bool> Masks::change_mask(RemoteProcess& process, RemoteThread& thread, Notification n,
                              Notification change) {
    bool first = worker_.signals.has_signal_to_handle(thread);
    int64_t result = -trace::restart_nointr;
    if (!first) result = co_await worker_.forwarding.ask_home(process, thread, change, true);
    if (result == thread_gone && thread.stub->dead()) co_return false;
    if (trace::is_restart(result)) {
        worker_.signals.hand_over_answered(thread);
        if (!first) trace::interrupt(thread.host_tid);  // see give_answer()
        process.notifier->reply_raw(n.id, -trace::restart_nointr);
        co_return false;
    }
    thread.mask.reset();
    if (auto signal = std::exchange(thread.answer_signal, std::nullopt))
        worker_.signals.deliver(thread, *signal);
    co_return true;
}

// The shadow must get the mask that rt_sigreturn restores; it has that of the handler.
Task<void> Masks::handler_return(RemoteProcess& process, RemoteThread& thread, Notification n) {
    pid_t pid = process.pid, tid = thread.tid;
    FaultOrigin origin = co_await settled_origin(worker_.loop, thread.host_tid);
    if (worker_.find_thread(pid, tid) != &thread) co_return;
    SignalFrame frame{};
    auto bytes = std::as_writable_bytes(std::span(&frame, 1));
    bool readable = co_await worker_.pager.memory.read(*process.fragment, {origin.stack}, bytes);
    if (frame.stack.ss_size != 0) thread.alt_stack_changed = true;
    if (readable && thread.mask_at_home != frame.mask) {
        Notification change = n;
        change.number = SYS_rt_sigprocmask;
        uint64_t mask_at = origin.stack + offsetof(SignalFrame, mask);
        const uint64_t args[6] = {SIG_SETMASK, mask_at, 0, sizeof frame.mask, 0, 0};
        std::memcpy(change.args, args, sizeof args);
        if (!co_await change_mask(process, thread, n, change)) co_return;
        thread.mask_at_home = frame.mask;
    }
    if (readable) thread.mask = frame.mask;
    process.notifier->let_it_run(n.id);
}

Task<void> Masks::suspend_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    if (!thread.borrowed) {
        co_await worker_.forwarding.forward(process, thread, n);
    } else {
        process.notifier->let_it_run(n.id);
        deliver_borrowed(thread);
    }
}

// The address of the signal mask that the call uses while it waits; 0: none.
Task<uint64_t> Masks::mask_of_call(RemoteProcess& process, Notification n) {
    const MaskPlace place = details_of(n.number).mask;
    if (place.argument < 0) co_return 0;
    const uint64_t given = n.args[place.argument];
    if (!place.in_pair || given == 0) co_return given;
    uint64_t pair[2] = {0, 0};  // address and size
    bool read = co_await worker_.pager.memory.read(
        *process.fragment, {given}, {reinterpret_cast<std::byte*>(pair), sizeof pair});
    co_return read ? pair[0] : 0;
}

// For a signal that only the call's temporary mask lets through: its handler must run with that
// mask and then restore the old one. rt_sigsuspend does exactly that, so the thread is made to call
// it. The signal is held back until then, because another one that the old mask lets through would
// be delivered first.
Task<void> Masks::end_under_mask(RemoteProcess& process, RemoteThread& thread, Notification n,
                                 uint64_t mask, HandledSignal signal) {
    auto context = co_await worker_.threads.stop_in_call(thread, n.id);
    if (!context) {
        worker_.signals.bounce(process.pid, thread.tid, signal);
        co_return;
    }
    thread.borrowed_for = signal;
    context->regs.orig_rax = ~0UL;
    context->regs.rax = static_cast<uint64_t>(-EINTR);
    thread.borrowed = std::make_unique<user_regs_struct>(context->regs);
    user_regs_struct regs = context->regs;
    regs.rip -= 2;
    regs.rax = SYS_rt_sigsuspend;
    regs.rdi = mask;
    regs.rsi = 8;
    trace::set_registers(thread.host_tid, regs);
    worker_.threads.go_on(thread);
}

// rt_sigsuspend, made in place of another call, has ended: restores that call's registers for the
// handler's frame.
void Masks::return_borrowed(RemoteThread& thread) {
    auto regs = std::move(thread.borrowed);
    auto now = trace::registers(thread.host_tid);
    if (!now) return;
    bool waited =
        now->orig_rax == SYS_rt_sigsuspend && static_cast<long>(now->rax) == -trace::restart_nohand;
    if (waited) {  // keep the kernel's result, by which it restores the mask
        now->rdi = regs->rdi;
        now->rsi = regs->rsi;
    } else {  // another signal came first
        now = *regs;
    }
    trace::set_registers(thread.host_tid, *now);
    deliver_borrowed(thread);
}

void Masks::deliver_borrowed(RemoteThread& thread) {
    if (auto signal = std::exchange(thread.borrowed_for, std::nullopt))
        worker_.signals.deliver(thread, *signal);
}

}  // namespace gpr::worker
