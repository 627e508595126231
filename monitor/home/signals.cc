// Signals arrive at home and are delivered where the thread is.

#include <sys/syscall.h>

#include <cstring>

#include "base/log.h"
#include "monitor/home/helper_calls.h"
#include "monitor/home/session.h"
#include "monitor/node/signal_wire.h"
#include "monitor/tracee/interrupted_call.h"
#include "monitor/tracee/stub_signals.h"
#include "monitor/tracee/unkillable.h"

namespace gpr {

namespace {
constexpr uint64_t bit_of(int signal) { return 1ULL << (signal - 1); }

constexpr std::chrono::milliseconds ends_waits_every{1};

// What the kernel does with it is nothing.
bool is_ignored(pid_t pid, int signal) {
    constexpr uint64_t by_default =
        bit_of(SIGCHLD) | bit_of(SIGCONT) | bit_of(SIGURG) | bit_of(SIGWINCH);
    uint64_t ignored = by_default & ~trace::signal_set(pid, "SigCgt:");
    return (ignored | trace::signal_set(pid, "SigIgn:")) & bit_of(signal);
}

// The other filters kill here by themselves.
bool is_strict_death(pid_t tid) {
    auto info = trace::signal_info(tid);
    return info && filter_death(*info) == FilterDeath::by_strict_mode;
}

// A fault that native Linux may not have.
void tell_where(pid_t tid, pid_t pid) {
    auto info = trace::signal_info(tid);
    auto regs = trace::registers(tid);
    if (!info || !regs) return;
    spdlog::debug("thread {} of {} faults: rip {:#x} rsp {:#x} fs {:#x} address {:#x}", tid, pid,
                  regs->rip, regs->rsp, regs->fs_base, reinterpret_cast<uint64_t>(info->si_addr));
}
}  // namespace

// A SIGSTOP met the thread, which blocked SIGCONT, where it had to go on. One that came since
// waits, and is undone by none: a newer SIGSTOP would have discarded it.
void HomeSession::stop_after_all(const HomeThread& thread) {
    bool continued = trace::pending_signals(thread.tid) & bit_of(SIGCONT);
    if (!continued) syscall(SYS_tgkill, thread.process->pid, thread.tid, SIGSTOP);
}

void HomeSession::on_signal(HomeThread& thread, int signal) {
    if (signal == SIGSTOP && thread.helper) {  // it blocks the others
        trace::resume(thread.tid);
        return;
    }
    if (signal == SIGCHLD && tells_of_helper(orphaned_helpers_, thread.tid)) {
        restart_what_is_never_interrupted(thread.tid);
        go_on_waiting(thread);
        trace::resume(thread.tid);
        return;
    }
    if (signal == SIGTRAP && meets_breakpoint(thread)) return;
    if (signal == SIGBUS && meets_end_of_file(thread)) return;
    if (!thread.helper && is_fault_in_stub(thread.tid)) {
        give_up(*thread.process, fmt::format("process {} ({}) cannot go on: it has broken the part "
                                             "of its memory that is gpr's",
                                             thread.process->pid, command_name(thread.tid)));
        return;
    }
    keep_order(thread, signal);
    name_cpu_timer(thread, signal);
    if (postpone_signal(thread, signal)) return;
    spdlog::trace("signal {} for tid {}: {}", signal, thread.tid,
                  !thread.remote   ? "here"
                  : thread.in_call ? "there, in a call"
                                   : "there");
    if (signal == SIGSTOP && has_opened(thread)) {
        spawn(show_opened(thread));
        return;
    }
    if (!thread.remote) restart_what_is_never_interrupted(thread.tid);
    if (signal == SIGSYS && is_strict_death(thread.tid)) {
        kill(thread.process->pid, SIGKILL);
        return;
    }
    if (signal == SIGSEGV && grows_for(thread)) return;
    if (!thread.remote && may_not_die(thread.process->pid, thread.tid, signal)) {
        auto end = [](HomeSession& self, pid_t process, pid_t tid) -> Task<void> {
            co_await until_gone(self.loop_, process);
            self.on_wait(tid, {WaitStatus::Kind::killed, SIGKILL});
        };
        spawn(end(*this, thread.process->pid, thread.tid));
        let_die(thread.tid);
        return;
    }
    HomeProcess& process = *thread.process;
    bool caught = process.caught_signals & bit_of(signal);
    // Without a handler the kernel here does the right thing to the whole process: it ignores,
    // stops or ends it, and the parent sees the right status. Of what is ignored it must not hear
    // again: another thread may be about to set a handler.
    if (!thread.remote || !caught) {
        go_on_waiting(thread, signal);
        if (signal == SIGSEGV) tell_where(thread.tid, process.pid);
        bool nothing = thread.remote && is_ignored(process.pid, signal);
        trace::resume(thread.tid, nothing ? 0 : signal);
        if (!thread.remote && caught) {
            note_handler(thread, signal);
            note_handled(thread, signal);
        }
        return;
    }
    if (thread.passed) {  // it has a handler only since the last one was passed on
        leave_in_kernel(thread, signal);
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
    // The stub is about to make the call, which would not know of the signal.
    bool too_early = thread.in_call && thread.repeatable && regs;
    if (too_early && !thread.stub->has_begun(regs->rip)) thread.stub->take_back(thread.tid, *regs);
    pass_on(thread, *info);
    trace::resume(thread.tid);
}

// The thread is in a stop of which nothing comes, or only a signal that does nothing: its call, if
// it waits, waits on. One that is to be handled ends it.
void HomeSession::go_on_waiting(HomeThread& thread, int signal) {
    pid_t pid = thread.process->pid, tid = thread.tid;
    auto regs = trace::registers(tid);
    if (!regs || !is_interrupted_wait(*regs)) {
        auto& wait = thread.resumed_wait;
        if (!regs || !wait) return;
        if (wait->is_about_to_begin(*regs)) {
            wait->resume(tid, *regs);
        } else {
            wait.reset();
        }
        return;
    }
    if (signal != 0 && !is_ignored(pid, signal)) return;
    uint64_t handled = trace::pending_signals(tid) & trace::signal_set(pid, "SigCgt:");
    if (handled & ~trace::signal_set(tid, "SigBlk:")) return;
    std::optional<Clock::time_point> begun;
    if (thread.in_call) begun = thread.call_began;
    auto& wait = thread.resumed_wait;
    if (!wait || !wait->is_interrupted(tid, *regs, begun)) {
        wait = ResumedWait::begin(pid, tid, *regs, begun);
        if (!wait) return;
        // When its time is over it is interrupted until it has ended.
        auto end_at = [](HomeSession& self, pid_t of, Clock::time_point at) -> Task<void> {
            auto find = [&]() -> HomeThread* {
                auto it = self.threads_.find(of);
                HomeThread* t = it == self.threads_.end() ? nullptr : it->second.get();
                return t && t->resumed_wait && t->resumed_wait->ends() == at ? t : nullptr;
            };
            co_await self.loop_.sleep(at - Clock::now());
            while (HomeThread* waiting = find()) {
                bool is_ours = !waiting->awaited && !waiting->process->stopped;
                if (is_ours) trace::interrupt(of);
                co_await self.loop_.sleep(ends_waits_every);
            }
        };
        bool has_end = wait->ends() != Clock::time_point::max();
        if (has_end) spawn(end_at(*this, tid, wait->ends()));
    }
    if (wait->resume(tid, *regs)) wait.reset();
}

std::optional<SignalAction> HomeSession::action_of(const MarshalledCall& call) {
    SignalAction action;
    action.signal = static_cast<int>(call.args[0]);
    bool sets = call.args[1] != 0 && call.in_bytes.size() >= sizeof action.kernel;
    if (!sets || action.signal < 1 || action.signal > 64) return std::nullopt;
    std::memcpy(action.kernel.data(), call.in_bytes.data(), sizeof action.kernel);
    return action;
}

// A handler counts before the kernel has it, its absence only afterwards: the kernel here must
// never begin one in the stub.
void HomeSession::before_action(HomeProcess& process, const SignalAction& action) {
    uint64_t bit = bit_of(action.signal);
    process.to_reset &= ~bit;
    note_trap_action(process, action);
    process.one_shot_actions.erase(action.signal);
    if (!action.catches()) return;
    process.caught_signals |= bit;
    bool restarts = action.kernel[1] & SA_RESTART;
    process.restarting_signals &= ~bit;
    if (restarts) process.restarting_signals |= bit;
    if (!(action.kernel[1] & SA_RESETHAND)) return;
    auto& left = process.one_shot_actions[action.signal] = action.kernel;
    left[0] = reinterpret_cast<uint64_t>(SIG_DFL);
}

void HomeSession::after_action(HomeProcess& process, const SignalAction& action) {
    if (!action.catches()) process.caught_signals &= ~bit_of(action.signal);
}

// The acceptor must know the handler before a signal can be passed on to it.
Task<void> HomeSession::action_call(HomeProcess& process, HomeThread& thread, Notification n) {
    SignalAction action{static_cast<int>(n.args[0]), {}};
    std::shared_ptr<Fragment> fragment = process.fragment;
    bool sets = n.args[1] != 0 && n.args[0] >= 1 && n.args[0] <= 64 && n.args[0] != SIGKILL &&
                n.args[0] != SIGSTOP && n.args[3] == sizeof(uint64_t);
    Address at{n.args[1]};
    auto bytes = std::as_writable_bytes(std::span(action.kernel));
    bool readable = sets && co_await pager_.read(*fragment, at, bytes);
    if (!notifier_->still_valid(n.id)) co_return;
    if (readable) {
        before_action(process, action);
        announce_action(process, action);
    }
    // A handler that was removed counts until the kernel does not have it any more.
    bool removed =
        readable && !action.catches() && (process.caught_signals >> (action.signal - 1) & 1) != 0;
    if (!removed) {
        notifier_->let_it_run(n.id);
        co_return;
    }
    auto taken = co_await take_call(thread);
    if (!taken) co_return;
    StubThread& stub = *taken->stub;
    int64_t result = co_await stub.call(n.number, n.args[0], n.args[1], n.args[2], n.args[3]);
    if (stub.dead()) co_return;
    if (result == 0) after_action(process, action);
    co_await return_from(thread, std::move(*taken), result);
}

AsyncMutex& HomeSession::actions_of(HomeProcess& process) {
    if (!process.actions) process.actions = std::make_unique<AsyncMutex>(loop_);
    return *process.actions;
}

void HomeSession::announce_action(HomeProcess& process, const SignalAction& action) {
    FrameBuilder frame;
    auto change = frame.session().initAction();
    change.setPid(process.pid);
    auto out = change.initAction();
    out.setSignal(static_cast<uint32_t>(action.signal));
    out.setAction({reinterpret_cast<const uint8_t*>(action.kernel.data()), sizeof action.kernel});
    link_.send(frame, Priority::urgent);
}

// A handler that is for once has begun: the kernel that began it has forgotten it, the other one
// is told.
void HomeSession::note_handled(HomeThread& thread, int signal) {
    HomeProcess& process = *thread.process;
    uint64_t bit = bit_of(signal);
    auto one_shot = process.one_shot_actions.find(signal);
    if (one_shot == process.one_shot_actions.end()) return;
    SignalAction left{signal, one_shot->second};
    process.one_shot_actions.erase(one_shot);
    if (thread.remote) {
        process.to_reset |= bit;
        spawn(reset_action(thread, left));
    } else {
        process.caught_signals &= ~bit;
        announce_action(process, left);
    }
}

Task<void> HomeSession::reset_action(HomeThread& thread, SignalAction left) {
    HomeProcess& process = *thread.process;
    StubThread& stub = *thread.stub;
    uint64_t bit = bit_of(left.signal);
    auto guard = co_await stub.lock();
    auto changing = co_await actions_of(process).lock();
    if (!(process.to_reset & bit)) co_return;  // the program has set another one since
    process.to_reset &= ~bit;
    stub.scratch().put(0, left.kernel);
    std::vector<Call> calls{Call{
        SYS_rt_sigaction,
        {static_cast<uint64_t>(left.signal), stub.scratch_address().value, 0, sizeof(uint64_t)},
        0}};
    co_await stub.run_locked(calls);
    if (calls[0].result == 0) after_action(process, left);
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
    delivery.setInfo(signal_bytes(info));
    link_.send(frame, Priority::urgent);
}

// The program dies of it at the acceptor; here it must be seen to die of the same.
Task<void> HomeSession::die_of(HomeThread& thread, int signal) {
    thread.process->caught_signals &= ~bit_of(signal);
    thread.passed.reset();
    StubThread& stub = *thread.stub;
    uint64_t at = stub.scratch_address().value;
    stub.scratch().part(0, 64).clear();
    auto number = static_cast<uint64_t>(signal);
    co_await stub.call(SYS_rt_sigaction, number, at, 0, 8);
    co_await stub.call(SYS_rt_sigprocmask, SIG_SETMASK, at, 0, 8);
    syscall(SYS_tgkill, thread.process->pid, thread.tid, signal);
}

void HomeSession::on_remote_signal(Frame frame) {
    auto delivery = frame->session().getSignal();
    HomeThread* thread = find_thread(delivery.getPid(), delivery.getTid());
    auto info = signal_of(delivery.getInfo());
    if (!thread || !thread->stub || !info) return;
    if (delivery.getHandled()) {
        note_handled(*thread, info->si_signo);
        handler_begun(*thread, delivery.getSerial(), delivery.getMask());
        return;
    }
    if (!delivery.getFatal()) {
        came_back(*thread, delivery.getSerial());
        return;
    }
    if (info->si_signo == SIGILL && !masked_.empty()) {
        tell_user(
            fmt::format("the program used an instruction that the acceptor does not have; "
                        "it lacks {}, and --mask-cpu hides that from the C library only",
                        fmt::join(masked_, ", ")));
    }
    if (auto death = filter_death(*info)) {
        spawn(die_by_filter(*thread, *death));
    } else {
        spawn(die_of(*thread, info->si_signo));
    }
}

}  // namespace gpr
