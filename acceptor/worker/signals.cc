#include "acceptor/worker/signals.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "acceptor/worker/crossings.h"
#include "acceptor/worker/files.h"
#include "acceptor/worker/filters.h"
#include "acceptor/worker/growth.h"
#include "acceptor/worker/masks.h"
#include "acceptor/worker/own_signals.h"
#include "acceptor/worker/process_end.h"
#include "acceptor/worker/standstill.h"
#include "acceptor/worker/threads.h"
#include "acceptor/worker/timers.h"
#include "acceptor/worker/worker.h"
#include "base/log.h"
#include "monitor/node/signal_wire.h"
#include "monitor/node/thread_progress.h"
#include "monitor/tracee/interrupted_call.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/signal_frame.h"
#include "monitor/tracee/stub_signals.h"

namespace gpr::worker {

namespace {
// From dequeueing a signal to the stop before its delivery: what a thread needs of a processor, and
// after how much sleep there will be none.
constexpr std::chrono::milliseconds runs_to_stop_in{1}, stands_in{10};

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

// The thread must be at the first instruction of a handler.
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

// One at a time: home passes on no other before it has heard about this one.
void Signals::deliver(RemoteThread& thread, const HandledSignal& signal) {
    OwnSignals::note_passed(thread, signal);
    thread.passed = signal;
    syscall(SYS_tgkill, thread.process->host_pid, thread.host_tid, signal.info.si_signo);
}

// A handler that blocks the signal may have started here, which home did not know. Then the signal
// waits at home, like all blocked ones, where calls look for them.
void Signals::hand_over(RemoteThread& thread, const HandledSignal& signal) {
    uint64_t blocked = trace::signal_set(thread.host_tid, "SigBlk:");
    if (blocked >> (signal.info.si_signo - 1) & 1) {
        if (thread.mask) tell_mask(thread, *thread.mask);  // not that of its stub
        bounce(thread.process->pid, thread.tid, signal);
    } else if (thread.passed && thread.passed->own) {  // which home does not know of
        bounce(thread.process->pid, thread.tid, signal);
    } else {
        deliver(thread, signal);
    }
}

// Delivers a signal that interrupted the call at home, before the call returns.
void Signals::hand_over_answered(RemoteThread& thread) {
    if (auto signal = std::exchange(thread.answer_signal, std::nullopt)) hand_over(thread, *signal);
}

// Home takes another mask for the thread's: it is to know this one before what follows.
void Signals::tell_mask(RemoteThread& thread, uint64_t mask) {
    if (!thread.mask_at_home || thread.mask_at_home == mask) return;
    thread.mask_at_home = mask;
    HandledSignal none;
    none.info.si_signo = SIGKILL;  // which never has a handler
    tell_of_signal(thread.process->pid, thread.tid, none, News::handled, mask);
}

// The thread is not here (any more): home knows where it is.
void Signals::bounce(pid_t pid, pid_t tid, const HandledSignal& signal) {
    spdlog::trace("signal {} of tid {} goes back", signal.info.si_signo, tid);
    tell_of_signal(pid, tid, signal, News::goes_back);
}

// Whether a signal that was passed on is pending for the thread. If it is not, the program has
// ignored it since, which discards pending signals; then it goes back.
bool Signals::has_signal_to_handle(RemoteThread& thread) {
    if (!thread.passed) return false;
    if (is_pending(thread)) return true;
    bounce(thread.process->pid, thread.tid, *std::exchange(thread.passed, std::nullopt));
    return false;
}

// A thread that has just dequeued its signal is in its stop, or will be soon: that signal has not
// been discarded.
void Signals::look_for_discarded(pid_t pid) {
    RemoteProcess* process = worker_.find_process(pid);
    if (!process) return;
    for (auto& [tid, thread] : process->threads) {
        if (!seems_discarded(*thread)) continue;
        spawn(send_back_discarded(pid, tid, thread->host_tid, thread->passed->serial));
    }
}

Task<void> Signals::send_back_discarded(pid_t pid, pid_t tid, pid_t host_tid, uint32_t serial) {
    const Progress enough{runs_to_stop_in, stands_in};
    co_await thread_gets_on(worker_.loop, host_tid, enough);
    RemoteThread* thread = worker_.find_thread(pid, tid);
    if (!thread || !seems_discarded(*thread) || thread->passed->serial != serial) co_return;
    bounce(pid, tid, *std::exchange(thread->passed, std::nullopt));
}

Task<void> Signals::signal_from_home(Frame frame) {
    { auto guard = co_await worker_.metadata.lock(); }
    auto delivery = frame->session().getSignal();
    auto info = signal_of(delivery.getInfo());
    if (!info) co_return;
    RemoteProcess* process = worker_.find_process(delivery.getPid());
    if (process && delivery.getTid() == 0) {
        if (info->si_signo == SIGSTOP) worker_.standstill.halt(*process);
        if (info->si_signo == SIGCONT) worker_.standstill.let_go_on(*process);
        co_return;
    }
    if (!process) co_return;
    RemoteThread* thread = worker_.find_thread(delivery.getPid(), delivery.getTid());
    if (delivery.getFatal()) {  // home was told of it, and lets its handler run
        const bool stands = thread && std::exchange(thread->dying, false);
        if (stands && worker_.standstill.debugged().let_call(*thread, *info)) co_return;
        if (stands) begin_handler(*process, *thread, info->si_signo, std::nullopt);
        co_return;
    }
    HandledSignal signal{*info, delivery.getSerial()};
    bool none = delivery.getHandled();  // see others_wait
    if (!none && (!thread || !thread->here())) {
        bounce(delivery.getPid(), delivery.getTid(), signal);
    } else if (!none && thread->answer) {
        thread->answer_signal = signal;
    } else if (!none) {
        hand_over(*thread, signal);
    }
    if (thread && std::exchange(thread->awaits_others, false)) worker_.threads.go_on(*thread);
}

void Signals::tell_of_signal(pid_t pid, pid_t tid, const HandledSignal& signal, News news,
                             uint64_t mask) {
    FrameBuilder frame;
    auto delivery = frame.session().initSignal();
    delivery.setPid(pid);
    delivery.setTid(tid);
    delivery.setHandled(news == News::handled);
    delivery.setFatal(news == News::fatal);
    delivery.setInfo(signal_bytes(signal.info));
    delivery.setMask(mask);
    delivery.setSerial(signal.serial);
    const RemoteThread* thread = worker_.find_thread(pid, tid);
    const bool traps = news == News::fatal && signal.info.si_signo == SIGTRAP;
    if (traps && thread) delivery.setMask(hit_traps(thread->host_tid));
    worker_.link.send(frame, gpr::Priority::urgent);
}

void Signals::note_interrupted(const RemoteThread& thread, bool interrupted) {
    if (interrupted) {
        interrupted_.insert(thread.host_tid);
    } else {
        interrupted_.erase(thread.host_tid);
    }
}

void Signals::restart_what_has_not_begun(const RemoteProcess& process, const RemoteThread& thread) {
    bool begun = interrupted_.erase(thread.host_tid) != 0;
    gpr::restart_what_has_not_begun(
        thread.host_tid, [&](const Row& row, const CallArguments& args) {
            // A wait in this kernel, rather than at home.
            if (begun || (row.opens_by_name() && worker_.files.has_rules())) return false;
            for (size_t i = 0; i < args.size(); i++) {
                if ((row.fd_arguments() >> i & 1) && has_fd_here(process, args[i])) return false;
            }
            uint32_t fd_base = process.fd_base == 0 ? INT32_MAX : process.fd_base;
            return acceptor_verdict(row.number, args, fd_base, {}) == Verdict::notify;
        });
}

void Signals::on_signal_stop(RemoteProcess& process, RemoteThread& thread, int signal) {
    // A signal without a handler does not come from home, where it acts at once, but from a process
    // on this host.
    auto stopped_by = trace::signal_info(thread.host_tid);
    if (stopped_by && worker_.standstill.debugged().takes_call(thread, *stopped_by)) return;
    bool from_home = thread.passed && thread.passed->info.si_signo == signal;
    bool stops = is_stop_signal(signal) && !has_handler(process.host_pid, signal);
    if (!from_home && (stops || is_ignored(process.host_pid, signal))) {
        trace::resume(thread.host_tid, stops ? signal : 0);
        return;
    }
    if (postpone_signal(thread, signal)) return;
    if (VdsoExit::may_wait(signal) && !process.debugged && Crossings::is_in_vdso(thread)) {
        thread.vdso_exit.emplace(thread.host_tid, signal);
        return;
    }
    restart_what_has_not_begun(process, thread);
    if (has_handler(process.host_pid, signal)) {
        interrupt_suspended(thread.host_tid, thread.suspended);
    }
    std::optional<HandledSignal> sent;
    if (thread.passed && thread.passed->info.si_signo == signal) sent.swap(thread.passed);
    auto info = trace::signal_info(thread.host_tid);
    if (!info) return;
    if (!sent && worker_.filters.dies_by_filter(thread, *info)) return;
    // A signal that deliver() has sent and that has been given up since.
    if (!sent && info->si_code == SI_TKILL) {
        trace::resume(thread.host_tid);
        return;
    }
    if (!sent && worker_.growth.mends_fault(process, thread, *info)) return;
    if (has_handler(process.host_pid, signal) && (sent || !process.debugged)) {
        begin_handler(process, thread, signal, sent);
        return;
    }
    if (sent) {  // it had a handler when home passed the signal on
        bounce(process.pid, thread.tid, *sent);
        trace::resume(thread.host_tid);
        return;
    }
    // The signal ends the program or is for a debugger; both are for home to handle. Until then
    // the thread stays stopped.
    if (auto regs = trace::registers(thread.host_tid)) {
        spdlog::debug("thread {} of {} gets signal {}: rip {:#x} rsp {:#x} fs {:#x} address {:#x}",
                      thread.tid, process.pid, signal, regs->rip, regs->rsp, regs->fs_base,
                      reinterpret_cast<uint64_t>(info->si_addr));
    }
    if (process.goes_home) {
        if (process.debugged) tell_of_signal(process.pid, thread.tid, {*info, 0}, News::fatal);
        spawn(worker_.crossings.come_home(thread, true));  // where it will get the signal again
        return;
    }
    thread.dying = true;
    tell_of_signal(process.pid, thread.tid, {*info, 0}, News::fatal);
}

bool Signals::leaves_vdso(RemoteThread& thread, WaitStatus status) {
    if (!thread.vdso_exit) return false;
    const bool is_there = !status.ended() && Crossings::is_in_vdso(thread);
    auto progress = thread.vdso_exit->on_stop(status, is_there);
    if (progress == VdsoExit::Progress::steps) return true;
    thread.vdso_exit.reset();
    return progress == VdsoExit::Progress::left;
}

// Handlers must not run in the stub. True if the signal stays pending until the program's mask is
// restored, or if it is dropped because the thread has left.
bool Signals::postpone_signal(RemoteThread& thread, int signal) {
    auto regs = trace::registers(thread.host_tid);
    if (!regs || regs->rip >> 32 != GPR_STUB_HIGH_WORD) return false;
    if (is_fault_in_stub(thread.host_tid)) {
        RemoteProcess& process = *thread.process;
        if (process.end_reason.empty()) process.end_reason = "has broken memory that is gpr's";
        end_now(process);
        return true;
    }
    if (!thread.here()) {  // home passed it on while the thread was leaving
        trace::resume(thread.host_tid);
        return true;
    }
    trace::block_all_signals(thread.host_tid);
    trace::resume(thread.host_tid, signal);
    return true;
}

// Lets the kernel build the frame and stops the thread at the handler's first instruction, where
// its mask is that of the handler.
void Signals::begin_handler(RemoteProcess& process, RemoteThread& thread, int signal,
                            const std::optional<HandledSignal>& sent) {
    spdlog::trace("signal {} of tid {} is handled", signal, thread.tid);
    if (thread.borrowed) worker_.masks.return_borrowed(thread);
    if (sent) {  // deliver() could not set the true origin; set it here
        trace::set_signal_info(thread.host_tid, sent->info);
    } else {
        worker_.timers.name_timer(process, thread);
    }
    auto info = trace::signal_info(thread.host_tid);
    if (!info) return;
    thread.beginning = HandledSignal{*info, sent ? sent->serial : 0, sent && sent->own};
    Growth::note_handled(process, signal);
    trace::single_step(thread.host_tid, signal);
}

// The thread's first stop after begin_handler(). False if the stop is for another signal, because
// the kernel could not build the frame. If the handler was removed meanwhile, the thread has made
// one step, perhaps a call (TRAP_BRKPT).
bool Signals::handler_begun(RemoteProcess& process, RemoteThread& thread) {
    HandledSignal begun = *std::exchange(thread.beginning, std::nullopt);
    auto stopped_by = trace::signal_info(thread.host_tid);
    uint64_t mask = trace::signal_mask(thread.host_tid);
    thread.mask = mask;
    // What was caused here need not change the mask that home takes for the thread's: it will be
    // restored when the handler returns, and be told of if home needs it before.
    const bool is_ours = begun.serial == 0 && thread.mask_at_home;
    if (!is_ours) thread.mask_at_home = mask;
    const uint64_t told = is_ours ? mask_is_kept : mask;
    if (!begun.own) tell_of_signal(process.pid, thread.tid, begun, News::handled, told);
    auto& other = thread.passed;
    if (other && mask >> (other->info.si_signo - 1) & 1) {
        tell_mask(thread, mask);
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

}  // namespace gpr::worker
