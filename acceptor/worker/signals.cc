// Signals at an acceptor: those that home passes on, and those that instructions cause here.

#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "acceptor/worker/worker.h"
#include "base/log.h"
#include "monitor/node/signal_wire.h"
#include "monitor/tracee/fault_origin.h"
#include "monitor/tracee/interrupted_call.h"
#include "monitor/tracee/signal_frame.h"

namespace gpr {

namespace {
// From dequeueing a signal to the stop before its delivery, if the CPU is busy.
constexpr std::chrono::milliseconds stands_in{10};

constexpr uint64_t bit_of(int signal) { return 1ULL << (signal - 1); }

bool has_handler(pid_t host_pid, int signal) {
    return trace::signal_set(host_pid, "SigCgt:") & bit_of(signal);
}

bool is_stop_signal(int signal) {
    return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

bool is_ignored(pid_t host_pid, int signal) {
    constexpr uint64_t by_default =
        bit_of(SIGCHLD) | bit_of(SIGCONT) | bit_of(SIGURG) | bit_of(SIGWINCH);
    uint64_t ignored = trace::signal_set(host_pid, "SigIgn:");
    bool has_default = !(ignored & bit_of(signal)) && !has_handler(host_pid, signal);
    return ignored & bit_of(signal) || (has_default && by_default & bit_of(signal));
}

bool is_pending(const RemoteThread& thread) {
    uint64_t pending = trace::signal_set(thread.host_tid, "SigPnd:");
    return pending >> (thread.passed->info.si_signo - 1) & 1;
}

bool is_in_stop(pid_t host_tid) {
    std::ifstream in(fmt::format("/proc/{}/status", host_tid));
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("State:")) return line.find("t (") != std::string::npos;
    }
    return false;
}

// The thread stands at the first instruction of a handler.
bool keeps_alt_stack(Fragment& fragment, pid_t host_tid) {
    auto regs = trace::registers(host_tid);
    SignalFrame frame{};
    bool read = regs && fragment.memory().read_exact({regs->rsp + return_address_size}, &frame,
                                                     sizeof frame);
    return read && !(static_cast<unsigned>(frame.stack.ss_flags) & ss_autodisarm);
}

bool seems_discarded(const RemoteThread& thread) {
    return thread.passed && !is_pending(thread) && !is_in_stop(thread.host_tid);
}
}  // namespace

// One at a time: home passes no other on before it has heard of this one.
void Worker::deliver(RemoteThread& thread, const HandledSignal& signal) {
    thread.passed = signal;
    syscall(SYS_tgkill, thread.process->host_pid, thread.host_tid, signal.info.si_signo);
}

// A handler may have begun here that blocks it, when home did not know. Then it waits at home, as
// all that are blocked do: calls look for them there.
void Worker::hand_over(RemoteThread& thread, const HandledSignal& signal) {
    uint64_t blocked = trace::signal_set(thread.host_tid, "SigBlk:");
    if (blocked >> (signal.info.si_signo - 1) & 1) {
        bounce(thread.process->pid, thread.tid, signal);
    } else {
        deliver(thread, signal);
    }
}

// One that was passed on is pending for the thread. If it is not, SIG_IGN, or a default that is to
// ignore it, has been set meanwhile, which discards what is pending.
bool Worker::has_signal_to_handle(RemoteThread& thread) {
    if (!thread.passed) return false;
    if (is_pending(thread)) return true;
    bounce(thread.process->pid, thread.tid, *std::exchange(thread.passed, std::nullopt));
    return false;
}

// A thread that has just dequeued it is in its stop, or soon will be: that is no discarded signal.
void Worker::look_for_discarded(pid_t pid) {
    RemoteProcess* process = find_process(pid);
    if (!process) return;
    std::map<pid_t, uint32_t> suspects;
    for (auto& [tid, thread] : process->threads) {
        if (seems_discarded(*thread)) suspects[tid] = thread->passed->serial;
    }
    if (suspects.empty()) return;
    loop_.after(stands_in, [this, pid, suspects] {
        for (auto [tid, serial] : suspects) {
            RemoteThread* thread = find_thread(pid, tid);
            if (!thread || !seems_discarded(*thread) || thread->passed->serial != serial) continue;
            bounce(pid, tid, *std::exchange(thread->passed, std::nullopt));
        }
    });
}

// What interrupted the call at home comes before the call returns.
void Worker::hand_over_answered(RemoteThread& thread) {
    if (auto signal = std::exchange(thread.answer_signal, std::nullopt)) hand_over(thread, *signal);
}

// Not by SIGSTOP: that would stop the executor, which is a thread of the process, and home may
// want pages of a stopped program.
void Worker::halt(RemoteProcess& process) {
    process.halted = true;
    for (auto& [tid, thread] : process.threads) {
        if (!thread->held && !thread->stub->in_stub()) trace::interrupt(thread->host_tid);
    }
}

void Worker::let_go_on(RemoteProcess& process) {
    process.halted = false;
    for (pid_t host_tid : std::exchange(process.halted_tids, {})) trace::resume(host_tid);
}

Task<void> Worker::signal_from_home(Frame frame) {
    { auto guard = co_await metadata_.lock(); }
    auto delivery = frame->session().getSignal();
    auto info = signal_of(delivery.getInfo());
    if (!info) co_return;
    RemoteProcess* process = find_process(delivery.getPid());
    if (process && delivery.getTid() == 0) {
        if (info->si_signo == SIGSTOP) halt(*process);
        if (info->si_signo == SIGCONT) let_go_on(*process);
        co_return;
    }
    if (!process) co_return;
    RemoteThread* thread = find_thread(delivery.getPid(), delivery.getTid());
    HandledSignal signal{*info, delivery.getSerial()};
    bool none = delivery.getHandled();  // see others_wait
    if (!none && (!thread || !thread->here)) {
        bounce(delivery.getPid(), delivery.getTid(), signal);
    } else if (!none && thread->answer) {
        thread->answer_signal = signal;
    } else if (!none) {
        hand_over(*thread, signal);
    }
    if (thread && std::exchange(thread->awaits_others, false)) go_on(*thread);
}

// Home makes the change first: what is pending there and blocked no more comes with the answer, and
// before the thread goes on. False: a signal is handled first, and then the thread calls again.
Task<bool> Worker::change_mask(RemoteProcess& process, RemoteThread& thread, Notification n,
                               Notification change) {
    bool first = has_signal_to_handle(thread);
    int64_t result =
        first ? -trace::restart_nointr : co_await ask_home(process, thread, change, true);
    if (result == thread_gone && thread.stub->dead()) co_return false;
    if (trace::is_restart(result)) {
        hand_over_answered(thread);
        if (!first) trace::interrupt(thread.host_tid);  // see give_answer()
        process.notifier->reply_raw(n.id, -trace::restart_nointr);
        co_return false;
    }
    thread.mask.reset();
    if (auto signal = std::exchange(thread.answer_signal, std::nullopt)) deliver(thread, *signal);
    co_return true;
}

Task<void> Worker::mask_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    calls_native_++;
    bool changes = n.args[1] != 0;
    if (changes && !co_await change_mask(process, thread, n, n)) co_return;
    process.notifier->let_it_run(n.id);
}

// The mask that the return brings back must be the shadow's, too, which has that of the handler.
Task<void> Worker::handler_return(RemoteProcess& process, RemoteThread& thread, Notification n) {
    pid_t pid = process.pid, tid = thread.tid;
    FaultOrigin origin = co_await settled_origin(loop_, thread.host_tid);
    if (find_thread(pid, tid) != &thread) co_return;
    SignalFrame frame{};
    auto bytes = std::as_writable_bytes(std::span(&frame, 1));
    bool readable = co_await pager_.read(*process.fragment, {origin.stack}, bytes);
    if (frame.stack.ss_size != 0) thread.alt_stack_changed = true;
    if (readable && thread.mask != frame.mask) {
        Notification change = n;
        change.number = SYS_rt_sigprocmask;
        uint64_t mask_at = origin.stack + offsetof(SignalFrame, mask);
        const uint64_t args[6] = {SIG_SETMASK, mask_at, 0, sizeof frame.mask, 0, 0};
        std::memcpy(change.args, args, sizeof args);
        if (!co_await change_mask(process, thread, n, change)) co_return;
        thread.mask = frame.mask;
    }
    process.notifier->let_it_run(n.id);
}

// The call in whose name rt_sigsuspend is made is over: its registers are for the handler's frame.
void Worker::return_borrowed(RemoteThread& thread) {
    auto regs = std::move(thread.borrowed);
    auto now = trace::registers(thread.host_tid);
    if (!now) return;
    bool waited =
        now->orig_rax == SYS_rt_sigsuspend && static_cast<long>(now->rax) == -trace::restart_nohand;
    if (waited) {  // the result stays the kernel's, with which it restores the mask
        now->rdi = regs->rdi;
        now->rsi = regs->rsi;
    } else {  // another signal was faster
        now = *regs;
    }
    trace::set_registers(thread.host_tid, *now);
    deliver_borrowed(thread);
}

void Worker::tell_of_signal(pid_t pid, pid_t tid, const HandledSignal& signal, SignalNews news,
                            uint64_t mask) {
    FrameBuilder frame;
    auto delivery = frame.session().initSignal();
    delivery.setPid(pid);
    delivery.setTid(tid);
    delivery.setHandled(news == SignalNews::handled);
    delivery.setFatal(news == SignalNews::fatal);
    delivery.setInfo(signal_bytes(signal.info));
    delivery.setMask(mask);
    delivery.setSerial(signal.serial);
    link_.send(frame, gpr::Priority::urgent);
}

// The kernel builds the frame and stops the thread at the handler's first instruction: then the
// mask is what it is in the handler.
void Worker::begin_handler(RemoteProcess& process, RemoteThread& thread, int signal,
                           const std::optional<HandledSignal>& sent) {
    spdlog::trace("signal {} of tid {} is handled", signal, thread.tid);
    if (thread.borrowed) return_borrowed(thread);
    if (sent) {  // the kernel would not let us send it as it was; here it gets its true origin
        trace::set_signal_info(thread.host_tid, sent->info);
    } else {
        name_timer(process, thread);
    }
    auto info = trace::signal_info(thread.host_tid);
    if (!info) return;
    thread.beginning = HandledSignal{*info, sent ? sent->serial : 0};
    trace::single_step(thread.host_tid, signal);
}

// Its first stop after that. False: it is for another signal, the kernel could not build the frame.
// If the handler was taken away meanwhile, the thread has made a step, perhaps a call (TRAP_BRKPT).
bool Worker::handler_begun(RemoteProcess& process, RemoteThread& thread) {
    HandledSignal begun = *std::exchange(thread.beginning, std::nullopt);
    auto stopped_by = trace::signal_info(thread.host_tid);
    uint64_t mask = trace::signal_set(thread.host_tid, "SigBlk:");
    thread.mask = mask;
    tell_of_signal(process.pid, thread.tid, begun, SignalNews::handled, mask);
    auto& other = thread.passed;
    if (other && mask >> (other->info.si_signo - 1) & 1) {
        bounce(process.pid, thread.tid, *std::exchange(other, std::nullopt));
    }
    bool stands_there = stopped_by && stopped_by->si_signo == SIGTRAP &&
                        (stopped_by->si_code == SIGTRAP || stopped_by->si_code == TRAP_TRACE ||
                         stopped_by->si_code == TRAP_BRKPT);
    thread.awaits_others = stands_there && begun.serial & others_wait;
    if (stands_there && !keeps_alt_stack(*process.fragment, thread.host_tid)) {
        thread.alt_stack_changed = true;
    }
    return stands_there;
}

void Worker::on_signal_stop(RemoteProcess& process, RemoteThread& thread, int signal) {
    // What has no handler is not home's, where it acts at once, but is from somebody on this host.
    bool from_home = thread.passed && thread.passed->info.si_signo == signal;
    bool stops = is_stop_signal(signal) && !has_handler(process.host_pid, signal);
    if (!from_home && (stops || is_ignored(process.host_pid, signal))) {
        trace::resume(thread.host_tid, stops ? signal : 0);
        return;
    }
    if (postpone_signal(thread, signal)) return;
    restart_what_is_never_interrupted(thread.host_tid);
    std::optional<HandledSignal> sent;
    if (thread.passed && thread.passed->info.si_signo == signal) sent.swap(thread.passed);
    auto info = trace::signal_info(thread.host_tid);
    if (!info) return;
    if (!sent && dies_by_filter(thread, *info)) return;
    // One of deliver()'s that has gone elsewhere since.
    if (!sent && info->si_code == SI_TKILL) {
        trace::resume(thread.host_tid);
        return;
    }
    if (!sent && mends_fault(process, thread, *info)) return;
    if (has_handler(process.host_pid, signal)) {
        begin_handler(process, thread, signal, sent);
        return;
    }
    if (sent) {  // it had one when home passed the signal on
        bounce(process.pid, thread.tid, *sent);
        trace::resume(thread.host_tid);
        return;
    }
    // It ends the program: that is home's to do. The thread stays where it is until then.
    if (auto regs = trace::registers(thread.host_tid)) {
        spdlog::debug("thread {} of {} gets signal {}: rip {:#x} rsp {:#x} fs {:#x} address {:#x}",
                      thread.tid, process.pid, signal, regs->rip, regs->rsp, regs->fs_base,
                      reinterpret_cast<uint64_t>(info->si_addr));
    }
    tell_of_signal(process.pid, thread.tid, {*info, 0}, SignalNews::fatal);
}

// The address of the signal mask that the call puts in force while it waits; 0: none.
Task<uint64_t> Worker::mask_of_call(RemoteProcess& process, Notification n) {
    switch (n.number) {
        case SYS_rt_sigsuspend: co_return n.args[0];
        case SYS_ppoll: co_return n.args[3];
        case SYS_epoll_pwait:
        case SYS_epoll_pwait2: co_return n.args[4];
        case SYS_pselect6:
        case SYS_io_pgetevents: {
            uint64_t pair[2] = {0, 0};  // address and size
            Address at{n.args[5]};
            if (n.args[5] == 0) co_return 0;
            bool read = co_await pager_.read(*process.fragment, at,
                                             {reinterpret_cast<std::byte*>(pair), sizeof pair});
            co_return read ? pair[0] : 0;
        }
        default: co_return 0;
    }
}

// A signal that only the call's own mask let through: its handler must run under that mask and
// return to the old one. rt_sigsuspend does just that, so the thread is made to call it instead.
// The signal waits until it does: one that the old mask lets through, too, would come before it.
Task<void> Worker::end_under_mask(RemoteProcess& process, RemoteThread& thread, Notification n,
                                  uint64_t mask, HandledSignal signal) {
    auto context = co_await stop_in_call(thread, n.id);
    if (!context) {
        bounce(process.pid, thread.tid, signal);
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
    go_on(thread);
}

void Worker::deliver_borrowed(RemoteThread& thread) {
    if (auto signal = std::exchange(thread.borrowed_for, std::nullopt)) deliver(thread, *signal);
}

}  // namespace gpr
