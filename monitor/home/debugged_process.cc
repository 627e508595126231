#include "monitor/home/debugged_process.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "monitor/home/children.h"
#include "monitor/home/core_dumps.h"
#include "monitor/home/debugged_signals.h"
#include "monitor/home/home.h"
#include "monitor/home/homecoming.h"
#include "monitor/home/signals.h"
#include "monitor/home/stops.h"
#include "monitor/tracee/context_raw.h"
#include "monitor/tracee/fault_origin.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::home {

HomeProcess* DebuggedProcess::process() const {
    HomeProcess* process = home_.find_process(pid_);
    return process && process->debugged.get() == this && process->fragment ? process : nullptr;
}

// Null: no such thread, or it is not stopped.
ThreadContext* DebuggedProcess::context_of(pid_t tid) const {
    HomeThread* thread = process() ? home_.find_thread(pid_, tid) : nullptr;
    return thread ? thread->goes_on_with.get() : nullptr;
}

Task<void> DebuggedProcess::begin(Debugging::Tell tell) {
    std::shared_ptr<DebuggedProcess> self = shared_from_this();
    silent_ = true;
    tell_ = std::move(tell);
    waits_ = false;
    // One that was started stops by itself, if it has not yet.
    if (!started_) begin_stop({debug::StopReason::Kind::signal, pid_, 0});
    auto is_under_way = [this] {
        return state_ != State::stopped && state_ != State::over && home_.find_process(pid_);
    };
    while (started_ ? is_under_way() : state_ == State::stopping) {
        co_await home_.remote_changed.wait();
    }
    silent_ = false;
}

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
    why_ = std::move(why);
    why_.pid = pid_;
    stopping->comes_home = true;
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
        // The debugger hears of one thread at a time. Others stop as if their signals came later.
        ThreadContext* context = self->context_of(tid);
        if (!context) continue;
        if (is_breakpoint(info)) context->regs.rip -= 1;  // it hits the breakpoint again
        const bool again = self->traps_.comes_again(tid, *context, info);
        if (!again) self->given_.send(self->pid_, tid, info, false);
    }
    self->find_cause();
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
        self->births_.told(self->why_);
        self->tell_(self->why_);
    }
}

// Of the stop, from the signal of its thread.
void DebuggedProcess::find_cause() {
    const auto taken = taken_.find(why_.tid);
    ThreadContext* context = context_of(why_.tid);
    if (taken == taken_.end() || !context) return;
    why_.at_breakpoint =
        is_breakpoint(taken->second) && memory_->breakpoints().contains({context->regs.rip - 1});
    if (why_.at_breakpoint) context->regs.rip -= 1;  // it stands behind the int3
    traps_.find_cause(*context, taken->second, why_);
}

bool DebuggedProcess::takes_signal(HomeThread& thread, int signal) {
    const pid_t tid = thread.tid;
    const bool known = given_.find(tid, signal) != nullptr;
    if (known && given_.arrived(tid)) return false;
    auto info = trace::signal_info(tid);
    const bool is_born = state_ == State::newborn || state_ == State::sharing;
    if (!info || state_ == State::over || is_born || !concerns(thread, *info)) return false;
    if (!known) traps_.note_hits(tid, *info, hit_traps(tid));
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

bool DebuggedProcess::takes_remote_signal(HomeThread& thread, const siginfo_t& info, uint8_t hits) {
    if (state_ == State::over || !concerns(thread, info)) return false;
    traps_.note_hits(thread.tid, info, hits);
    if (given_.is_expected_there(thread.tid, info.si_signo) && thread.remote()) {
        // If the process is about to stop, the thread comes home now and raises the signal later.
        if (state_ != State::running) return true;
        given_.arrived_there(thread.tid);
        home_.debugging.let_handle(thread, info);
        return true;
    }
    stop_for(thread, info);
    return true;
}

// False if the thread is to make the call.
bool DebuggedProcess::takes_call(HomeThread& thread, const siginfo_t& info, bool here) {
    if (state_ == State::over || is_child_) return false;
    if (!here) {
        // If the process is about to stop, the thread comes home before the call.
        if (state_ == State::running && !traps_.catches(thread.tid, info)) return false;
        stop_for(thread, info);
        return true;
    }
    // A thread that only visits makes its calls unseen.
    const bool stops = !thread.remote() && process() && traps_.catches(thread.tid, info);
    if (!stops) return false;
    auto context = capture_context(thread.tid);
    if (!context || !home_.stops.divert(thread, *context)) return false;
    thread.goes_on_with = std::make_unique<ThreadContext>(std::move(*context));
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

void DebuggedProcess::on_thread_end(HomeThread& thread, const WaitStatus& status) {
    for (auto* infos : {&taken_, &late_}) infos->erase(thread.tid);
    given_.forget(thread.tid);
    traps_.on_thread_end(thread.tid);
    if (thread.tid != pid_ || state_ == State::over) return;
    state_ = State::over;
    const bool exited = status.kind == WaitStatus::Kind::exited;
    debug::StopReason why{
        exited ? debug::StopReason::Kind::exited : debug::StopReason::Kind::killed, pid_,
        status.value};
    why.pid = pid_;
    births_.release();
    tell_(why);
    home_.remote_changed.notify_all();
}

void DebuggedProcess::on_exec() {
    memory_ = std::make_shared<DebuggedMemory>(home_, pid_, debug::Breakpoints());
    taken_.clear();
    late_.clear();
    given_.on_exec();
    steps_.clear();
    handler_.reset();
    traps_.on_exec();
    births_.release();
    inherits_ = false;
    if (state_ != State::over) state_ = State::stopping;
}

void DebuggedProcess::stop_at_exec(HomeThread& thread, ThreadContext context) {
    if (state_ == State::over) return;
    thread.process->comes_home = true;
    thread.goes_on_with = std::make_unique<ThreadContext>(std::move(context));
    places_ = {{thread.tid, directory_node}};
    state_ = State::stopped;
    if (leaves_) {
        spawn(leave(shared_from_this()));
    } else {
        debug::StopReason why{debug::StopReason::Kind::exec, thread.tid, 0};
        why.pid = pid_;
        tell_(why);
    }
    home_.remote_changed.notify_all();
}

void DebuggedProcess::lose() {
    if (std::exchange(state_, State::over) == State::over) return;
    debug::StopReason why{debug::StopReason::Kind::exited, pid_, 0};
    why.pid = pid_;
    births_.release();
    tell_(why);
    home_.remote_changed.notify_all();
}

std::vector<pid_t> DebuggedProcess::threads() const {
    std::vector<pid_t> tids;
    if (inherits_ && state_ != State::over) {  // a child that has not been asked for
        tids.push_back(pid_);
    } else if (HomeProcess* its = process()) {
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

void DebuggedProcess::interrupt(int signal) {
    begin_stop({debug::StopReason::Kind::signal, pid_, signal});
}

void DebuggedProcess::kill() { ::kill(pid_, SIGKILL); }

Task<std::string> DebuggedProcess::command(std::string words) {
    if (words != "gpr threads") {
        co_return "'monitor gpr threads' shows where the threads ran when they were stopped.\n";
    }
    std::string text;
    for (const pid_t tid : threads()) text += fmt::format("thread {}: {}\n", tid, place_of(tid));
    co_return text;
}

}  // namespace gpr::home
