// Signals at an acceptor: those that home passes on, and those that instructions cause here.

#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "acceptor/worker.h"
#include "base/log.h"
#include "monitor/fault_origin.h"
#include "monitor/interrupted_call.h"
#include "monitor/signal_wire.h"

namespace gpr {

namespace {
// flags, link, stack and sigcontext come first (asm-generic/ucontext.h).
constexpr uint64_t mask_in_ucontext = 8 + 8 + 24 + 256;

bool has_handler(pid_t host_pid, int signal) {
    std::ifstream in(fmt::format("/proc/{}/status", host_pid));
    for (std::string line; std::getline(in, line);) {
        if (!line.starts_with("SigCgt:")) continue;
        return std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1;
    }
    return false;
}
}  // namespace

void Worker::deliver(RemoteThread& thread, const siginfo_t& info) {
    thread.signals.add(info);
    syscall(SYS_tgkill, thread.process->host_pid, thread.host_tid, info.si_signo);
}

// What interrupted the call at home comes before the call returns.
void Worker::deliver_answered(RemoteThread& thread) {
    for (const siginfo_t& info : std::exchange(thread.answer_signals, {})) deliver(thread, info);
}

// A handler has begun here, with a mask that home does not know. What is blocked must not interrupt
// the thread's calls at home, and is found pending there alone.
void Worker::put_signal_state(RemoteThread& thread, wire::CallRequest::Builder call) {
    bool blocked_ones = !thread.signals.empty();
    if (!thread.in_handler && !blocked_ones) return;
    uint64_t mask = trace::signal_set(thread.host_tid, "SigBlk:");
    call.setSignalMask(mask);
    call.setMasked(std::exchange(thread.in_handler, false));
    if (call.getMasked()) thread.shadow_mask = mask;
    if (!blocked_ones) return;
    auto signals = thread.signals.take_all(mask);
    auto list = call.initPending(static_cast<unsigned>(signals.size()));
    for (unsigned i = 0; i < signals.size(); i++) list.set(i, signal_bytes(signals[i]));
}

// One that home has sent, that is not blocked and only not delivered yet.
bool Worker::has_signal_to_handle(const RemoteThread& thread) {
    if (thread.signals.empty()) return false;
    uint64_t pending = trace::signal_set(thread.host_tid, "SigPnd:");
    return pending & ~trace::signal_set(thread.host_tid, "SigBlk:");
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
    RemoteThread* thread = find_thread(delivery.getPid(), delivery.getTid());
    bool away = process && process->mixed && (!thread || !thread->here);
    // It left home before the call that the thread has begun meanwhile came there.
    if (away || (thread && thread->waits_at_home)) {
        bounce(delivery.getPid(), delivery.getTid(), *info);
        co_return;
    }
    if (!thread) co_return;
    deliver(*thread, *info);
}

// The mask that the return brings back must be the shadow's, too, which may have that of the
// handler. What it blocks no more comes before the thread goes on.
Task<void> Worker::handler_return(RemoteProcess& process, RemoteThread& thread, Notification n) {
    uint64_t frame = fault_origin(thread.host_tid).stack;  // the kernel's struct ucontext
    uint64_t mask = 0;
    auto bytes = std::as_writable_bytes(std::span(&mask, 1));
    bool readable = co_await pager_.read(*process.fragment, {frame + mask_in_ucontext}, bytes);
    bool held_back = !thread.shadow_mask || (*thread.shadow_mask & ~mask) != 0;
    thread.in_handler = thread.shadow_mask != mask;  // an outer one, if it is one
    if (readable && held_back) {
        thread.in_handler = false;
        Notification change = n;
        change.number = SYS_rt_sigprocmask;
        const uint64_t args[6] = {SIG_SETMASK, frame + mask_in_ucontext, 0, sizeof mask, 0, 0};
        std::memcpy(change.args, args, sizeof args);
        int64_t result = co_await ask_home(process, thread, change, true);
        if (result == thread_gone) co_return;
        thread.shadow_mask = mask;
        deliver_answered(thread);
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

void Worker::tell_of_signal(pid_t pid, pid_t tid, const siginfo_t& info, SignalNews news) {
    FrameBuilder frame;
    auto delivery = frame.session().initSignal();
    delivery.setPid(pid);
    delivery.setTid(tid);
    delivery.setHandled(news == SignalNews::handled);
    delivery.setFatal(news == SignalNews::fatal);
    delivery.setInfo(signal_bytes(info));
    link_.send(frame, gpr::Priority::urgent);
}

void Worker::begin_handler(RemoteProcess& process, RemoteThread& thread, int signal,
                           const std::optional<siginfo_t>& sent) {
    spdlog::trace("signal {} of tid {} is handled", signal, thread.tid);
    if (thread.borrowed) return_borrowed(thread);
    thread.in_handler = true;
    if (sent) {  // the kernel would not let us send it as it was; here it gets its true origin
        trace::set_signal_info(thread.host_tid, *sent);
    } else {
        name_timer(process, thread);
    }
    auto info = trace::signal_info(thread.host_tid);
    if (!info) return;
    tell_of_signal(process.pid, thread.tid, *info, SignalNews::handled);
    trace::resume(thread.host_tid, signal);
}

void Worker::on_signal_stop(RemoteProcess& process, RemoteThread& thread, int signal) {
    if (postpone_signal(thread, signal)) return;
    restart_what_is_never_interrupted(thread.host_tid);
    auto sent = thread.signals.take(signal);
    auto info = trace::signal_info(thread.host_tid);
    if (!info) return;
    if (!sent && dies_by_filter(thread, *info)) return;
    // One of deliver()'s that has gone elsewhere since, or has become one with another.
    if (!sent && info->si_code == SI_TKILL) {
        trace::resume(thread.host_tid);
        return;
    }
    if (!sent && grows_for(process, thread, *info)) return;
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
    tell_of_signal(process.pid, thread.tid, *info, SignalNews::fatal);
}

}  // namespace gpr
