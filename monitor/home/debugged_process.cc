#include "monitor/home/debugged_process.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "monitor/home/children.h"
#include "monitor/home/core_dumps.h"
#include "monitor/home/home.h"
#include "monitor/home/homecoming.h"
#include "monitor/home/signals.h"
#include "monitor/home/stops.h"
#include "monitor/node/signal_wire.h"
#include "monitor/tracee/context_raw.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::home {

namespace {

constexpr uint64_t trap_flag = 0x100;

// The kernel reports int3 in this way.
bool is_breakpoint(const siginfo_t& info) {
    return info.si_signo == SIGTRAP && info.si_code == SI_KERNEL;
}

// Whether the thread's next instruction will raise it again.
bool comes_again(const siginfo_t& info) {
    switch (info.si_signo) {
        case SIGSEGV:
        case SIGBUS:
        case SIGFPE:
        case SIGILL:
        case SIGTRAP: return info.si_code > 0;
        default: return false;
    }
}

}  // namespace

HomeProcess* DebuggedProcess::process() const {
    HomeProcess* process = home_.find_process(pid_);
    return process && process->debugged.get() == this && process->fragment ? process : nullptr;
}

// Null: no such thread, or it is not stopped.
ThreadContext* DebuggedProcess::context_of(pid_t tid) const {
    HomeThread* thread = process() ? home_.find_thread(pid_, tid) : nullptr;
    return thread ? thread->goes_on_with.get() : nullptr;
}

Task<void> DebuggedProcess::begin() {
    std::shared_ptr<DebuggedProcess> self = shared_from_this();
    silent_ = true;
    begin_stop({debug::StopReason::Kind::signal, pid_, 0});
    while (state_ == State::stopping) co_await home_.remote_changed.wait();
}

std::shared_ptr<DebuggedProcess> DebuggedProcess::for_child(pid_t child) const {
    auto its = std::make_shared<DebuggedProcess>(
        home_, child, [](const debug::StopReason&) {}, memory_->breakpoints());
    its->is_child_ = its->leaves_ = true;
    return its;
}

void DebuggedProcess::remove_breakpoints() { begin_stop({}); }

// Whether a signal that the thread is about to get is for the debugger or, in a child, may be of a
// breakpoint. Where a thread at an acceptor stands is known only when it has come home.
bool DebuggedProcess::concerns(const HomeThread& thread, const siginfo_t& info) const {
    if (!is_child_) return true;
    if (!is_breakpoint(info)) return false;
    auto regs = trace::registers(thread.tid);
    return thread.remote() || (regs && memory_->breakpoints().contains({regs->rip - 1}));
}

void DebuggedProcess::begin_stop(debug::StopReason why) {
    HomeProcess* stopping = process();
    if (!stopping || state_ != State::running) return;
    state_ = State::stopping;
    why_ = why;
    stopping->recalled = true;
    for (const auto& [tid, thread] : stopping->threads) places_[tid] = thread->node;
    spawn(stop(shared_from_this()));
}

// Like any debugger, waits as long as it takes: a thread may be in a call that cannot be
// interrupted.
Task<void> DebuggedProcess::stop(std::shared_ptr<DebuggedProcess> self) {
    for (;;) {
        HomeProcess* process = self->process();
        if (!process) co_return;
        auto home = co_await self->home_.homecoming.bring_threads(*process);
        process = self->process();
        if (!process) co_return;
        if (home) break;
        spdlog::info("a debugger waits: {}", home.error().message());
    }
    for (const pid_t tid : std::exchange(self->steps_, {})) {
        if (ThreadContext* context = self->context_of(tid)) context->regs.eflags &= ~trap_flag;
    }
    for (const auto& [tid, info] : std::exchange(self->late_, {})) {
        self->undo_late_signal(tid, info);
    }
    if (auto taken = self->taken_.find(self->why_.tid); taken != self->taken_.end()) {
        self->why_.at_breakpoint = self->step_back_to_breakpoint(taken->first, taken->second);
    }
    if (auto handler = std::exchange(self->handler_, std::nullopt)) {
        const ThreadContext* context = self->context_of(self->why_.tid);
        if (context && context->regs.rip == handler->value) self->why_.at_breakpoint = false;
        co_await self->memory_->set_breakpoint(*handler, false);
    }
    self->state_ = State::stopped;
    spdlog::debug("process {} has stopped for its debugger: thread {}, signal {}", self->pid_,
                  self->why_.tid, self->why_.value);
    self->home_.remote_changed.notify_all();
    if (self->leaves_) {
        co_await leave(self);
    } else if (!std::exchange(self->silent_, false)) {
        self->tell_(self->why_);
    }
}

// If the thread has hit one of our breakpoints: it stands behind the int3, and is moved back.
bool DebuggedProcess::step_back_to_breakpoint(pid_t tid, const siginfo_t& info) {
    ThreadContext* context = context_of(tid);
    if (!context || !is_breakpoint(info)) return false;
    if (!memory_->breakpoints().contains({context->regs.rip - 1})) return false;
    context->regs.rip -= 1;
    return true;
}

// The debugger hears of one thread at a time. Others stop as if their signals came later.
void DebuggedProcess::undo_late_signal(pid_t tid, const siginfo_t& info) {
    ThreadContext* context = context_of(tid);
    if (!context) return;
    if (is_breakpoint(info)) context->regs.rip -= 1;  // it hits the breakpoint again
    if (comes_again(info)) return;
    given_[tid] = info;
    again_.insert(tid);
    syscall(SYS_tgkill, pid_, tid, info.si_signo);
}

bool DebuggedProcess::takes_signal(HomeThread& thread, int signal) {
    const pid_t tid = thread.tid;
    auto given = given_.find(tid);
    if (given != given_.end() && given->second.si_signo == signal) {
        given_.erase(given);
        if (again_.erase(tid) == 0) return false;
    }
    auto info = trace::signal_info(tid);
    if (!info || state_ == State::over || !concerns(thread, *info)) return false;
    if (!thread.process->fragment) {  // an unsplit child: once split, it hits the breakpoint again
        auto context = capture_context(tid);
        if (!context || !thread.process->can_be_split()) return false;
        context->regs.rip -= 1;
        spawn([](Home& home, HomeThread& child, ThreadContext before) -> Task<void> {
            co_await home.children.split_stopped(*child.process, child, before);
        }(home_, thread, std::move(*context)));
        return true;
    }
    if (thread.remote()) {  // its shadow: the thread itself comes home
        home_.signals.go_on_waiting(thread);
        trace::resume(tid);
    } else {
        auto context = capture_context(tid);
        if (!context || !home_.stops.divert(thread, *context)) return false;
        thread.goes_on_with = std::make_unique<ThreadContext>(std::move(*context));
    }
    stop_for(thread, *info);
    return true;
}

bool DebuggedProcess::takes_remote_signal(HomeThread& thread, const siginfo_t& info) {
    if (state_ == State::over || !concerns(thread, info)) return false;
    const auto repeated = repeated_.find(thread.tid);
    if (repeated != repeated_.end() && repeated->second == info.si_signo && thread.remote()) {
        // If the process is about to stop, the thread comes home now and raises the signal later.
        if (state_ != State::running) return true;
        repeated_.erase(repeated);
        let_handle(thread, info);
        return true;
    }
    stop_for(thread, info);
    return true;
}

void DebuggedProcess::stop_for(const HomeThread& thread, const siginfo_t& info) {
    if (state_ == State::running) {
        taken_[thread.tid] = info;
        begin_stop({debug::StopReason::Kind::signal, thread.tid, info.si_signo});
    } else {
        late_[thread.tid] = info;
    }
}

void DebuggedProcess::restore_signal(HomeThread& thread, int signal) {
    auto given = given_.find(thread.tid);
    if (given == given_.end() || given->second.si_signo != signal) return;
    trace::set_signal_info(thread.tid, given->second);
}

void DebuggedProcess::on_thread_end(HomeThread& thread, const WaitStatus& status) {
    for (auto* infos : {&taken_, &late_, &given_}) infos->erase(thread.tid);
    repeated_.erase(thread.tid);
    if (thread.tid != pid_ || state_ == State::over) return;
    state_ = State::over;
    const bool exited = status.kind == WaitStatus::Kind::exited;
    home_.remote_changed.notify_all();
    tell_({exited ? debug::StopReason::Kind::exited : debug::StopReason::Kind::killed, pid_,
           status.value});
}

void DebuggedProcess::on_exec() {
    memory_ = std::make_shared<DebuggedMemory>(home_, pid_, debug::Breakpoints());
    taken_.clear();
    late_.clear();
    repeated_.clear();
    steps_.clear();
    handler_.reset();
    if (state_ != State::over) state_ = State::stopping;
}

void DebuggedProcess::stop_at_exec(HomeThread& thread, ThreadContext context) {
    if (state_ == State::over) return;
    thread.process->recalled = true;
    thread.goes_on_with = std::make_unique<ThreadContext>(std::move(context));
    places_ = {{thread.tid, directory_node}};
    state_ = State::stopped;
    home_.remote_changed.notify_all();
    if (leaves_) {
        spawn(leave(shared_from_this()));
    } else {
        tell_({debug::StopReason::Kind::exec, thread.tid, 0});
    }
}

void DebuggedProcess::lose() {
    if (std::exchange(state_, State::over) == State::over) return;
    home_.remote_changed.notify_all();
    tell_({debug::StopReason::Kind::exited, pid_, 0});
}

std::vector<pid_t> DebuggedProcess::threads() const {
    std::vector<pid_t> tids;
    if (HomeProcess* its = process()) {
        for (const auto& [tid, thread] : its->threads) {
            if (!thread->helper && !thread->ends()) tids.push_back(tid);
        }
    }
    std::ranges::sort(tids);
    return tids;
}

std::string DebuggedProcess::place_of(pid_t tid) const {
    auto place = places_.find(tid);
    if (place == places_.end() || place->second == directory_node) return "at home";
    return fmt::format("at {}", home_.acceptors.at(place->second).link.peer_name());
}

std::optional<debug::Registers> DebuggedProcess::registers(pid_t tid) const {
    const ThreadContext* context = context_of(tid);
    if (!context) return std::nullopt;
    return debug::Registers{context->regs, context->xstate};
}

bool DebuggedProcess::set_registers(pid_t tid, const debug::Registers& registers) {
    ThreadContext* context = context_of(tid);
    if (!context) return false;
    context->regs = registers.general;
    if (!registers.extended.empty()) context->xstate = registers.extended;
    return true;
}

std::optional<siginfo_t> DebuggedProcess::signal_info(pid_t tid) const {
    auto taken = taken_.find(tid);
    if (taken == taken_.end()) return std::nullopt;
    return taken->second;
}

void DebuggedProcess::go_on(const std::vector<debug::Continuation>& threads) {
    HomeProcess* its = process();
    if (!its || state_ != State::stopped) return;
    state_ = State::running;
    places_.clear();
    home_.homecoming.end_recall(*its);
    spawn(continue_threads(shared_from_this(), threads));
}

Task<void> DebuggedProcess::continue_threads(std::shared_ptr<DebuggedProcess> self,
                                             std::vector<debug::Continuation> threads) {
    for (const debug::Continuation& how : threads) {
        if (self->dies_of(how)) co_return;
    }
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
        if (how.signal != 0) self->give(how);
        self->taken_.erase(how.tid);
        co_await self->home_.homecoming.let_go(*thread);
    }
}

void DebuggedProcess::give(const debug::Continuation& how) {
    const siginfo_t info = info_to_give(how);
    const HomeProcess* its = process();
    // At the acceptor the thread would fault again before a signal from here got there. That fault
    // serves as the signal: takes_remote_signal().
    const bool repeats = its && !home_.policy.mixed() && its->started_remotely &&
                         comes_again(info) && its->caught_signals >> (how.signal - 1) & 1;
    if (repeats) {
        repeated_[how.tid] = how.signal;
        return;
    }
    expect_given(how.tid, info);
    syscall(SYS_tgkill, pid_, how.tid, how.signal);
}

void DebuggedProcess::expect_given(pid_t tid, const siginfo_t& info) {
    given_[tid] = info;
    again_.erase(tid);
}

// For a thread that has stopped at the acceptor before it gets the signal.
void DebuggedProcess::let_handle(const HomeThread& thread, const siginfo_t& info) {
    FrameBuilder frame;
    auto delivery = frame.session().initSignal();
    delivery.setPid(pid_);
    delivery.setTid(thread.tid);
    delivery.setFatal(true);
    delivery.setInfo(signal_bytes(info));
    home_.acceptors.at(thread.node).link.send(frame, Priority::urgent);
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

siginfo_t DebuggedProcess::info_to_give(const debug::Continuation& how) const {
    auto taken = taken_.find(how.tid);
    if (taken != taken_.end() && taken->second.si_signo == how.signal) return taken->second;
    siginfo_t info{};
    info.si_signo = how.signal;
    info.si_code = SI_USER;
    return info;
}

// If the signal that the debugger gives the thread ends the process with a core file, lets it die
// now, so that the file shows the thread as it stands. True if so.
bool DebuggedProcess::dies_of(const debug::Continuation& how) {
    HomeThread* thread = home_.find_thread(pid_, how.tid);
    const bool dies = how.signal != 0 && thread && thread->goes_on_with &&
                      Signals::would_dump_core(*thread, how.signal);
    if (dies) spawn(home_.core_dumps.die_of(*thread, info_to_give(how)));
    return dies;
}

void DebuggedProcess::interrupt() { begin_stop({debug::StopReason::Kind::signal, pid_, SIGINT}); }

void DebuggedProcess::kill() { ::kill(pid_, SIGKILL); }

void DebuggedProcess::detach() {
    tell_ = [](const debug::StopReason&) {};
    if (std::exchange(leaves_, true)) return;
    if (state_ == State::stopped || (state_ == State::running && memory_->breakpoints().empty())) {
        spawn(leave(shared_from_this()));
    } else {
        begin_stop({});
    }
}

Task<void> DebuggedProcess::leave(std::shared_ptr<DebuggedProcess> self) {
    for (const Address at : self->memory_->breakpoints().all())
        co_await self->memory_->set_breakpoint(at, false);
    HomeProcess* its = self->process();
    if (!its) co_return;
    const std::vector<pid_t> tids = self->threads();
    const auto taken = self->taken_.find(self->why_.tid);
    const bool is_programs_own = self->is_child_ && taken != self->taken_.end() &&
                                 is_breakpoint(taken->second) && !self->why_.at_breakpoint;
    if (is_programs_own) syscall(SYS_tgkill, self->pid_, taken->first, SIGTRAP);
    self->state_ = State::over;
    its->debugged.reset();
    self->home_.homecoming.end_recall(*its);
    for (const pid_t tid : tids) {
        HomeThread* thread = self->home_.find_thread(self->pid_, tid);
        if (thread && thread->goes_on_with) co_await self->home_.homecoming.let_go(*thread);
    }
}

Task<std::string> DebuggedProcess::command(std::string words) {
    if (words != "gpr threads") {
        co_return "'monitor gpr threads' shows where the threads ran when they were stopped.\n";
    }
    std::string text;
    for (const pid_t tid : threads()) text += fmt::format("thread {}: {}\n", tid, place_of(tid));
    co_return text;
}

}  // namespace gpr::home
