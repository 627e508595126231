// Signals arrive at home and are delivered where the thread is.

#include <sys/syscall.h>

#include <cstring>

#include "monitor/home_session.h"
#include "monitor/interrupted_call.h"

namespace gpr {

namespace {
constexpr bool in_set(uint64_t set, int signal) { return set >> (signal - 1) & 1; }
}  // namespace

void HomeSession::on_signal(HomeThread& thread, int signal) {
    if (postpone_signal(thread, signal)) return;
    if (!thread.remote) restart_what_is_never_interrupted(thread.tid);
    HomeProcess& process = *thread.process;
    // Without a handler the kernel here does the right thing to the whole process: it ignores,
    // stops or ends it, and the parent sees the right status.
    if (!thread.remote || !in_set(process.caught_signals, signal)) {
        trace::resume(thread.tid, signal);
        return;
    }
    auto info = trace::signal_info(thread.tid);
    if (!info) return;
    // The call's own restart code travels with the signal; the kernel there decides.
    auto regs = trace::registers(thread.tid);
    bool interrupted = regs && static_cast<long>(regs->orig_rax) >= 0 &&
                       regs->orig_rax != GPR_PARK &&
                       trace::is_restart(static_cast<long>(regs->rax));
    if (interrupted) {
        regs->orig_rax = ~0UL;
        trace::set_registers(thread.tid, *regs);
    }
    if (thread.in_call) {
        // The stub is about to make the call, which would not know of the signal.
        if (regs && thread.may_take_back && !thread.stub->has_begun(regs->rip)) {
            thread.stub->take_back();
        }
        thread.interruptions.push_back(*info);
    } else {
        FrameBuilder frame;
        auto delivery = frame.session().initSignal();
        delivery.setPid(process.pid);
        delivery.setTid(thread.tid);
        delivery.setInfo({reinterpret_cast<const uint8_t*>(&*info), sizeof *info});
        link_.send(frame, Priority::urgent);
    }
    trace::resume(thread.tid);
}

void HomeSession::note_action(HomeProcess& process, const MarshalledCall& call) {
    if (call.in_bytes.size() < sizeof(uint64_t) || call.args[1] == 0) return;
    auto signal = static_cast<int>(call.args[0]);
    if (signal < 1 || signal > 64) return;
    uint64_t handler;
    std::memcpy(&handler, call.in_bytes.data(), sizeof handler);
    uint64_t bit = 1ULL << (signal - 1);
    if (handler > 1) {
        process.caught_signals |= bit;
    } else {
        process.caught_signals &= ~bit;
    }
}

// The kernel stops the threads it has here; those that run at the acceptor are no business of its.
void HomeSession::stop_remotely(HomeProcess& process, bool stopped) {
    if (process.stopped == stopped) return;
    process.stopped = stopped;
    if (!process.started_remotely) return;
    siginfo_t info{};
    info.si_signo = stopped ? SIGSTOP : SIGCONT;
    FrameBuilder frame;
    auto delivery = frame.session().initSignal();
    delivery.setPid(process.pid);
    delivery.setInfo({reinterpret_cast<const uint8_t*>(&info), sizeof info});
    link_.send(frame, Priority::urgent);
}

// The program dies of it at the acceptor; here it must be seen to die of the same.
Task<void> HomeSession::die_of(HomeThread& thread, int signal) {
    StubThread& stub = *thread.stub;
    uint64_t at = stub.scratch_address().value;
    auto* scratch = const_cast<uint8_t*>(stub.mailbox().slot(stub.slot()).scratch);
    std::memset(scratch, 0, 64);
    auto number = static_cast<uint64_t>(signal);
    co_await stub.call(SYS_rt_sigaction, number, at, 0, 8);
    co_await stub.call(SYS_rt_sigprocmask, SIG_SETMASK, at, 0, 8);
    thread.process->caught_signals &= ~(1ULL << (signal - 1));
    syscall(SYS_tgkill, thread.process->pid, thread.tid, signal);
}

void HomeSession::on_remote_signal(Frame frame) {
    auto delivery = frame->session().getSignal();
    HomeThread* thread = find_thread(delivery.getPid(), delivery.getTid());
    if (!thread || !thread->stub || delivery.getInfo().size() != sizeof(siginfo_t)) return;
    siginfo_t info;
    std::memcpy(&info, delivery.getInfo().begin(), sizeof info);
    if (info.si_signo < 1 || info.si_signo > 64) return;
    if (!delivery.getFatal()) {  // it came there too late, the thread was already leaving
        thread->postponed.add(info);
        syscall(SYS_tgkill, thread->process->pid, thread->tid, info.si_signo);
        return;
    }
    spawn(die_of(*thread, info.si_signo));
}

}  // namespace gpr
