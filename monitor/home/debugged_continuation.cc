// DebuggedProcess: how its threads continue.
#include <sys/syscall.h>
#include <unistd.h>

#include "monitor/home/core_dumps.h"
#include "monitor/home/debugged_process.h"
#include "monitor/home/debugged_signals.h"
#include "monitor/home/home.h"
#include "monitor/home/homecoming.h"
#include "monitor/home/signals.h"
#include "monitor/tracee/context_raw.h"
#include "monitor/tracee/fault_origin.h"

namespace gpr::home {

namespace {
// Whether the signal that the debugger gives the thread ends the process with a core file.
bool dies_of(const HomeThread& thread, int signal) {
    return signal != 0 && thread.goes_on_with && Signals::would_dump_core(thread, signal);
}

siginfo_t info_to_give(const std::map<pid_t, siginfo_t>& taken, const debug::Continuation& how) {
    const auto its = taken.find(how.tid);
    if (its != taken.end() && its->second.si_signo == how.signal) return its->second;
    siginfo_t info{};
    info.si_signo = how.signal;
    info.si_code = SI_USER;
    return info;
}

// Whether the thread would fault again at the acceptor before the signal from here got there. That
// fault serves as the signal: takes_remote_signal().
bool repeats_there(const Home& home, const HomeProcess& process, const siginfo_t& info) {
    return !home.policy.mixed() && process.started_remotely && is_raised_by_instruction(info) &&
           process.caught_signals >> (info.si_signo - 1) & 1;
}
}  // namespace

void DebuggedProcess::go_on(const std::vector<debug::Continuation>& threads) {
    HomeProcess* its = process();
    if (!its || state_ != State::stopped) return;
    // Children that have been made while it stopped.
    if (births_.next(why_)) {
        births_.told(why_);
        auto tell = [self = shared_from_this()] { self->tell_(self->why_); };
        home_.loop.after(std::chrono::milliseconds(0), tell);
        return;
    }
    for (const debug::Continuation& how : threads) {
        if (ThreadContext* context = context_of(how.tid)) traps_.prepare(how.tid, *context, true);
    }
    state_ = State::running;
    places_.clear();
    home_.homecoming.end(*its);
    spawn(continue_threads(shared_from_this(), threads));
}

Task<void> DebuggedProcess::continue_threads(std::shared_ptr<DebuggedProcess> self,
                                             std::vector<debug::Continuation> threads) {
    for (const debug::Continuation& how : threads) {
        HomeThread* thread = self->home_.find_thread(self->pid_, how.tid);
        if (!thread || !dies_of(*thread, how.signal)) continue;
        // Now, so that the core file shows the thread as it stands.
        spawn(self->home_.core_dumps.die_of(*thread, info_to_give(self->taken_, how)));
        co_return;
    }
    co_await self->traps_.threads().equip_all(self->pid_);
    for (debug::Continuation& how : threads) {
        if (how.steps && how.signal != 0) how.steps = !co_await self->stop_at_handler(how);
    }
    for (const debug::Continuation& how : threads) {
        // One of them may have stopped the others again.
        if (self->state_ != State::running) co_return;
        HomeThread* thread = self->home_.find_thread(self->pid_, how.tid);
        ThreadContext* context = self->context_of(how.tid);
        if (!thread || !context) continue;
        if (how.steps) {
            context->regs.eflags |= trap_flag;
            self->steps_.insert(how.tid);
        }
        const siginfo_t info = info_to_give(self->taken_, how);
        if (how.signal != 0 && repeats_there(self->home_, *thread->process, info)) {
            self->given_.expect_there(how.tid, how.signal);
        } else if (how.signal != 0) {
            self->given_.send(self->pid_, how.tid, info, true);
        }
        self->taken_.erase(how.tid);
        co_await self->home_.homecoming.let_go(*thread);
    }
}

// A step with a signal that has a handler ends at the handler's first instruction, as with
// PTRACE_SINGLESTEP. The kernel clears the trap flag there, so a breakpoint ends the step. False if
// the signal has no handler, or that has a breakpoint already.
Task<bool> DebuggedProcess::stop_at_handler(debug::Continuation how) {
    HomeThread* thread = home_.find_thread(pid_, how.tid);
    std::shared_ptr<StubThread> stub = thread ? thread->stub : nullptr;
    if (!stub || !thread->goes_on_with) co_return false;
    uint64_t handler = 0;
    {
        auto guard = co_await stub->lock();
        std::vector<Call> calls{
            Call{SYS_rt_sigaction,
                 {static_cast<uint64_t>(how.signal), 0, stub->scratch_address().value, 8},
                 0}};
        co_await stub->run_locked(calls);
        if (calls[0].result != 0) co_return false;
        handler = stub->scratch().get<uint64_t>(0).to_pass_on();
    }
    const Address at{handler};
    if (handler <= 1 || memory_->breakpoints().contains(at)) co_return false;  // SIG_DFL, SIG_IGN
    bool set = co_await memory_->set_breakpoint(at, true);
    if (set) handler_ = at;
    co_return set;
}

void DebuggedProcess::detach() {
    tell_ = [](const debug::StopReason&) {};
    waits_ = false;
    if (std::exchange(leaves_, true)) return;
    births_.release();
    if (state_ == State::newborn || state_ == State::sharing) {
        HomeProcess* its = home_.find_process(pid_);
        const bool is_free = state_ == State::sharing || memory_->breakpoints().empty();
        is_child_ = true;
        state_ = is_free ? State::over : State::running;
        if (is_free && its && its->debugged.get() == this) its->debugged.reset();
        home_.remote_changed.notify_all();
        return;
    }
    const bool is_free = memory_->breakpoints().empty() && !traps_.threads().any();
    if (state_ == State::stopped || (state_ == State::running && is_free)) {
        spawn(leave(shared_from_this()));
    } else {
        begin_stop({});
    }
}

Task<void> DebuggedProcess::leave(std::shared_ptr<DebuggedProcess> self) {
    for (const Address at : self->memory_->breakpoints().all())
        co_await self->memory_->set_breakpoint(at, false);
    const std::vector<pid_t> tids = self->threads();
    self->traps_.clear();
    for (const pid_t tid : tids) {
        if (ThreadContext* context = self->context_of(tid)) {
            self->traps_.prepare(tid, *context, false);
        }
    }
    if (self->state_ == State::stopped) co_await self->traps_.threads().equip_all(self->pid_);
    HomeProcess* its = self->process();
    if (!its) co_return;
    const auto taken = self->taken_.find(self->why_.tid);
    const bool is_programs_own = self->is_child_ && taken != self->taken_.end() &&
                                 is_breakpoint(taken->second) && !self->why_.at_breakpoint;
    if (is_programs_own) syscall(SYS_tgkill, self->pid_, taken->first, SIGTRAP);
    self->state_ = State::over;
    Debugging::tell_of_traps(*its);
    its->debugged.reset();
    self->home_.homecoming.end(*its);
    for (const pid_t tid : tids) {
        HomeThread* thread = self->home_.find_thread(self->pid_, tid);
        if (thread && thread->goes_on_with) co_await self->home_.homecoming.let_go(*thread);
    }
}

}  // namespace gpr::home
