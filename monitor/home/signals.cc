#include "monitor/home/signals.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "monitor/home/core_dumps.h"
#include "monitor/home/cpu_timing.h"
#include "monitor/home/debugging.h"
#include "monitor/home/failures.h"
#include "monitor/home/filters.h"
#include "monitor/home/functions.h"
#include "monitor/home/growth.h"
#include "monitor/home/helper_calls.h"
#include "monitor/home/home.h"
#include "monitor/home/passed_signals.h"
#include "monitor/home/proc_files.h"
#include "monitor/home/resting.h"
#include "monitor/home/signal_actions.h"
#include "monitor/home/tracing.h"
#include "monitor/home/trap_state.h"
#include "monitor/node/signal_wire.h"
#include "monitor/tracee/interrupted_call.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/stub_signals.h"
#include "monitor/tracee/unkillable.h"
#include "syscall/filter.h"

namespace gpr::home {

namespace {
constexpr uint64_t bit_of(int signal) { return 1ULL << (signal - 1); }

constexpr std::chrono::milliseconds ends_waits_every{1};

// Whether the kernel ignores the signal.
bool is_ignored(pid_t pid, int signal) {
    constexpr uint64_t by_default =
        bit_of(SIGCHLD) | bit_of(SIGCONT) | bit_of(SIGURG) | bit_of(SIGWINCH);
    uint64_t ignored = by_default & ~trace::signal_set(pid, "SigCgt:");
    return (ignored | trace::signal_set(pid, "SigIgn:")) & bit_of(signal);
}

// Strict mode is imitated; filters kill the thread without our help.
bool is_strict_death(pid_t tid) {
    auto info = trace::signal_info(tid);
    return info && filter_death(*info) == FilterDeath::by_strict_mode;
}

// Logs a fault that might not occur natively.
void tell_where(pid_t tid, pid_t pid) {
    auto info = trace::signal_info(tid);
    auto regs = trace::registers(tid);
    if (!info || !regs) return;
    spdlog::debug("thread {} of {} faults: rip {:#x} rsp {:#x} fs {:#x} address {:#x}", tid, pid,
                  regs->rip, regs->rsp, regs->fs_base, reinterpret_cast<uint64_t>(info->si_addr));
}

}  // namespace

// For a signal to a thread that is in its stub on the way into the program: handlers must not run
// in the stub, so the signal is blocked until the program's own mask is restored. True if so.
bool Signals::postpone_signal(HomeThread& thread, int signal) {
    bool on_its_way =
        thread.stub && (!thread.remote() || thread.is_in(HomeThread::Business::departure));
    if (!on_its_way || signal == SIGSTOP) return false;
    auto regs = trace::registers(thread.tid);
    if (!regs || regs->rip >> 32 != GPR_STUB_HIGH_WORD) return false;
    // A signal that ends the program need not wait for the stub, which the program may have broken.
    // A debugger decides what it does, and is to see the thread's own registers.
    HomeProcess& process = *thread.process;
    const uint64_t deadly = deadly_signals(process.pid, process.caught_signals);
    if (!process.debugged && deadly & bit_of(signal)) return false;
    thread.masked = true;
    PassedSignals::leave_in_kernel(thread, signal);
    return true;
}

// Makes up for a SIGSTOP that came while the thread had to go on, with SIGCONT blocked. A SIGCONT
// that is pending now came after the SIGSTOP, which would have discarded an earlier one; then there
// is nothing to do.
void Signals::stop_after_all(const HomeThread& thread) {
    bool continued = trace::pending_signals(thread.tid) & bit_of(SIGCONT);
    if (!continued) syscall(SYS_tgkill, thread.process->pid, thread.tid, SIGSTOP);
}

void Signals::note_reported(HomeThread& thread, const Notification& n) {
    reported_[n.tid] = {n.number, std::to_array(n.args)};
    gpr::note_reported(thread.suspended, n.number, n.instruction_pointer);
}

// A call counts as not begun if it is reported and not answered, or is to be reported and has not
// been yet: then the last one that was is another one, or one just like it, which cannot be told
// from a call that has begun.
void Signals::restart_what_has_not_begun(const HomeThread& thread) {
    gpr::restart_what_has_not_begun(thread.tid, [&](const Row& row, const CallArguments& args) {
        const size_t waiting = home_.notifier->waiting();
        home_.notifier->on_thread_gone(thread.tid);  // a thread that has stopped no longer waits
        if (home_.notifier->waiting() < waiting) return true;
        if (!is_to_be_reported(*thread.process, row, args)) return false;
        auto last = reported_.find(thread.tid);
        if (last == reported_.end() || last->second != Reported{row.number, args}) return true;
        return row.opens_by_name() && !may_wait_to_open(thread.tid, row, args);
    });
}

// Of calls that may wait: the filter reports those that may be about files of an acceptor.
bool Signals::is_to_be_reported(const HomeProcess& process, const Row& row,
                                const std::array<uint64_t, 6>& args) const {
    if (home_.chaos && !is_of_launcher(row.number)) return true;
    const unsigned fd_base = home_.acceptors.fd_base();
    if (!process.listener || fd_base == 0) return false;
    if (row.opens_by_name()) return true;
    for (size_t i = 0; i < args.size(); i++) {
        const auto number = static_cast<uint32_t>(args[i]);
        const bool elsewhere = number >= fd_base && number <= INT32_MAX;
        if ((row.fd_arguments() >> i & 1) && elsewhere) return true;
    }
    return false;
}

// Goes on without a signal that is not the program's, or does not matter to it any more.
bool Signals::drops(HomeThread& thread, int signal) {
    if (signal == SIGCHLD && tells_of_helper(home_.orphaned_helpers, thread.tid)) {
        restart_what_has_not_begun(thread);
        go_on_waiting(thread);
    } else if (!(signal == SIGSTOP && thread.helper) &&  // a helper blocks all others
               thread.process->dumped_for == 0) {
        return false;
    }
    trace::resume(thread.tid);
    return true;
}

bool Signals::would_dump_core(const HomeThread& thread, int signal) {
    const HomeProcess& process = *thread.process;
    const bool ends =
        !(process.caught_signals & bit_of(signal)) && !is_ignored(process.pid, signal);
    return ends && !thread.helper && CoreDumps::is_due(process, signal);
}

// If the signal ends the process with a core file, lets it die so. True if so.
bool Signals::dumps_core(HomeThread& thread, int signal) {
    if (!would_dump_core(thread, signal)) return false;
    // In the stub it has no registers of the program's own to show; it dies as it stands.
    if (!thread.remote() && thread.stub && thread.stub->in_stub()) return false;
    auto info = trace::signal_info(thread.tid);
    if (!info) return false;
    const bool remote = thread.remote();
    spawn(home_.core_dumps.die_of(thread, *info));
    if (remote) trace::resume(thread.tid);  // a shadow, whose thread comes home to die
    return true;
}

void Signals::on_signal(HomeThread& thread, int signal) {
    met_.at(static_cast<size_t>(signal))++;
    if (signal == SIGSYS && home_.debugging.takes_call(thread)) return;
    if (drops(thread, signal)) return;
    Tracing::restore_signal(thread, signal);
    if (signal == SIGTRAP && home_.functions.meets_breakpoint(thread)) return;
    if (signal == SIGBUS && home_.growth.meets_end_of_file(thread)) return;
    // Its other threads may be stopped by us until it is prepared, and could not take part.
    if (signal == SIGSTOP && thread.process->state == HomeProcess::State::preparing) {
        thread.process->threads.at(thread.process->pid)->stop_met = true;
        trace::resume(thread.tid);
        return;
    }
    if (!thread.helper && is_fault_in_stub(thread.tid)) {
        // Exec failed after the point of no return: execve(2), SIGSEGV.
        if (thread.process->executing) {
            trace::resume(thread.tid, signal);
            return;
        }
        home_.failures.has_broken_ours(*thread.process);
        return;
    }
    if (signal == SIGCONT) stop_remotely(*thread.process, false);
    PassedSignals::keep_order(thread, signal);
    CpuTiming::name_cpu_timer(thread, signal);
    if (postpone_signal(thread, signal)) return;
    home_.debugging.restore_signal(thread, signal);
    spdlog::trace("signal {} for tid {}: {}", signal, thread.tid,
                  !thread.remote()                           ? "here"
                  : thread.is_in(HomeThread::Business::call) ? "there, in a call"
                                                             : "there");
    if (!thread.remote()) restart_what_has_not_begun(thread);
    if (!thread.remote() && thread.process->caught_signals & bit_of(signal)) {
        interrupt_suspended(thread.tid, thread.suspended);
    }
    if (signal == SIGSYS && is_strict_death(thread.tid)) {
        kill(thread.process->pid, SIGKILL);
        return;
    }
    if (signal == SIGSEGV && home_.growth.grows_for(thread)) return;
    if (!thread.remote() && may_not_die(thread.process->pid, thread.tid, signal)) {
        auto end = [](Home& self, pid_t process, pid_t tid) -> Task<void> {
            co_await until_gone(self.loop, process);
            self.on_wait(tid, {WaitStatus::Kind::killed, SIGKILL});
        };
        spawn(end(home_, thread.process->pid, thread.tid));
        let_die(thread.tid);
        return;
    }
    HomeProcess& process = *thread.process;
    bool caught = process.caught_signals & bit_of(signal);
    if (home_.debugging.takes_signal(thread, signal)) return;
    // Without a handler home's kernel does the right thing for the whole process: it ignores the
    // signal, or stops or ends the process, and the parent sees the right status. An ignored signal
    // must not be delivered again: another thread may be about to set a handler.
    if (dumps_core(thread, signal)) return;
    if (!thread.remote() || !caught) {
        go_on_waiting(thread, signal);
        if (signal == SIGSEGV) tell_where(thread.tid, process.pid);
        bool nothing = thread.remote() && is_ignored(process.pid, signal);
        trace::resume(thread.tid, nothing ? 0 : signal);
        if (!thread.remote() && caught) {
            TrapState::note_handler(thread, signal);
            home_.signal_actions.note_handled(thread, signal);
        }
        return;
    }
    pass_on(thread, signal);
}

// Passes the signal on to where the thread is; the program has a handler for it.
void Signals::pass_on(HomeThread& thread, int signal) {
    if (thread.passed) {  // its handler was set after the previous signal was passed on
        PassedSignals::leave_in_kernel(thread, signal);
        return;
    }
    auto info = trace::signal_info(thread.tid);
    if (!info) return;
    // The interrupted call's restart code is sent along; the kernel there decides.
    auto regs = trace::registers(thread.tid);
    const bool interrupted =
        regs && is_in_programs_call(*regs) && trace::is_restart(static_cast<long>(regs->rax));
    if (interrupted) {
        regs->orig_rax = ~0UL;
        trace::set_registers(thread.tid, *regs);
    }
    // The stub is about to make the call, which must not begin after the signal.
    bool too_early = thread.is_in(HomeThread::Business::call) && thread.repeatable && regs;
    if (too_early && !thread.stub->has_begun(regs->rip)) thread.stub->take_back(thread.tid, *regs);
    home_.passed_signals.pass_on(thread, *info);
    trace::resume(thread.tid);
}

void Signals::on_group_stop(HomeThread& thread) {
    stop_remotely(*thread.process, true);
    let_wait_end(thread.tid);
    trace::stay_stopped(thread.tid);
}

void Signals::on_call_end(HomeThread& thread) {
    if (home_.resting.names().takes_call(thread)) return;
    if (ProcFiles::has_opened(thread)) {
        spawn(home_.proc_files.show_opened(thread));
        return;
    }
    go_on_waiting(thread);
    trace::resume(thread.tid);
}

// The thread is in a stop without consequences, or before a signal that is ignored. If it was in a
// call that waits, the call continues to wait, unless another signal is about to be handled.
void Signals::go_on_waiting(HomeThread& thread, int signal) {
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
    if (thread.is_in(HomeThread::Business::call)) begun = thread.call_began;
    auto& wait = thread.resumed_wait;
    if (!wait || !wait->is_interrupted(tid, *regs, begun)) {
        wait = ResumedWait::begin(pid, tid, *regs, begun);
        if (!wait) return;
        // At its deadline the thread is interrupted until the call has ended.
        auto end_at = [](Home& self, pid_t of, Clock::time_point at) -> Task<void> {
            auto find = [&]() -> HomeThread* {
                auto it = self.threads.find(of);
                HomeThread* t = it == self.threads.end() ? nullptr : it->second.get();
                return t && t->resumed_wait && t->resumed_wait->ends() == at ? t : nullptr;
            };
            co_await self.loop.sleep(at - Clock::now());
            while (HomeThread* waiting = find()) {
                bool is_ours = !waiting->awaited && !waiting->process->stopped;
                if (is_ours) trace::interrupt(of);
                co_await self.loop.sleep(ends_waits_every);
            }
        };
        bool has_end = wait->ends() != Clock::time_point::max();
        if (has_end) spawn(end_at(home_, tid, wait->ends()));
    }
    if (wait->resume(tid, *regs)) wait.reset();
}

// The kernel stops the threads that it has here; the acceptors have to be told to stop theirs.
void Signals::stop_remotely(HomeProcess& process, bool stopped) {
    if (process.stopped == stopped) return;
    process.stopped = stopped;
    if (!process.started_remotely) return;
    siginfo_t info{};
    info.si_signo = stopped ? SIGSTOP : SIGCONT;
    FrameBuilder frame;
    auto delivery = frame.session().initSignal();
    delivery.setPid(process.pid);
    delivery.setInfo(signal_bytes(info));
    home_.acceptors.send(frame);
}

// The program is killed by this signal at the acceptor; its parent must see the same here.
Task<void> Signals::die_of(HomeThread& thread, int signal) {
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

void Signals::on_remote_signal(Frame frame, NodeId from) {
    auto delivery = frame->session().getSignal();
    HomeThread* thread = home_.find_thread(delivery.getPid(), delivery.getTid());
    auto info = signal_of(delivery.getInfo());
    if (!thread || !thread->stub || !info) return;
    if (delivery.getHandled()) {
        home_.signal_actions.note_handled(*thread, info->si_signo);
        home_.passed_signals.handler_begun(*thread, delivery.getSerial(), delivery.getMask());
        return;
    }
    if (!delivery.getFatal()) {
        home_.passed_signals.came_back(*thread, *info, delivery.getSerial());
        return;
    }
    const auto& masked = home_.acceptors.at(from).masked;
    if (info->si_signo == SIGILL && !masked.empty()) {
        home_.outputs.tell(
            fmt::format("the program used an instruction that the acceptor does not have; "
                        "it lacks {}, and --mask-cpu hides that from the C library only",
                        fmt::join(masked, ", ")));
    }
    if (home_.debugging.takes_remote_call(*thread, *info)) return;
    if (home_.debugging.takes_remote_signal(*thread, *info,
                                            static_cast<uint8_t>(delivery.getMask())))
        return;
    if (auto death = filter_death(*info)) {
        spawn(home_.filters.die_by_filter(*thread, *death));
    } else if (CoreDumps::is_due(*thread->process, info->si_signo)) {
        spawn(home_.core_dumps.die_of(*thread, *info));
    } else if (thread->process->dumped_for == 0) {
        spawn(die_of(*thread, info->si_signo));
    }
}

}  // namespace gpr::home
