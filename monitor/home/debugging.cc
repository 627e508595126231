#include "monitor/home/debugging.h"

#include "monitor/home/children.h"
#include "monitor/home/debugged_process.h"
#include "monitor/home/home.h"
#include "monitor/home/tracing.h"
#include "monitor/node/signal_wire.h"
#include "monitor/tracee/call_stops.h"
#include "monitor/tracee/context_raw.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::home {

namespace {
constexpr std::chrono::milliseconds looks_every{1};
constexpr std::chrono::seconds patience{10};  // for a process that is just being split
// For another debugger that has gone, which may not have been noticed yet.
constexpr std::chrono::milliseconds patience_with_other{500};
}  // namespace

Debugging::Debugging(Home& home) : home_(home), tracing_(std::make_unique<Tracing>(home)) {}

Debugging::~Debugging() = default;

void Debugging::await_debugger(HomeProcess& process) {
    process.debugged = std::make_shared<DebuggedProcess>(home_, process.pid, true);
}

// Splits the process, if it has not been.
Task<Result<void>> Debugging::make_whole(pid_t pid) {
    const auto until = Clock::now() + patience;
    const auto until_gone = Clock::now() + patience_with_other;
    for (;;) {
        HomeProcess* process = home_.find_process(pid);
        if (!process) co_return fail(ESRCH, fmt::format("process {} is not in a session", pid));
        const bool debugged = process->debugged && process->debugged->has_debugger();
        if (debugged && Clock::now() < until_gone) {
            co_await home_.loop.sleep(looks_every);
            continue;
        }
        if (debugged) co_return fail(fmt::format("process {} has a debugger", pid));
        if (process->has_vfork_children || process->shares_memory_with) {
            co_return fail(fmt::format(
                "process {} shares its memory with another one (clone, CLONE_VM)", pid));
        }
        if (process->comes_home || process->doomed || process->finished) {
            co_return fail(fmt::format("process {} is about to leave its session", pid));
        }
        if (process->stays_home) {
            co_return fail(
                fmt::format("process {} runs natively, in namespaces of its own; a "
                            "debugger inside of them can attach to it after 'gpr kill'",
                            pid));
        }
        const bool is_whole =
            process->state == HomeProcess::State::split && process->fragment && !process->executing;
        if (is_whole && !process->debugged) co_return Result<void>{};
        if (is_whole) process->debugged->interrupt(0);  // a child: its breakpoints are removed
        if (Clock::now() > until) {
            co_return fail(
                fmt::format("process {} cannot be split; its session's log says why "
                            "(--log-level info)",
                            pid));
        }
        if (process->can_be_split()) co_await home_.children.split_child(pid);
        co_await home_.loop.sleep(looks_every);
    }
}

Task<Result<std::shared_ptr<DebuggedProcess>>> Debugging::begin(pid_t pid, Tell tell) {
    HomeProcess* begun = home_.find_process(pid);
    if (begun && begun->debugged && begun->debugged->waits_for_debugger()) {
        std::shared_ptr<DebuggedProcess> waits = begun->debugged;
        co_await waits->begin(std::move(tell));
        if (!home_.find_process(pid)) co_return fail(ESRCH, "the program could not be started");
        co_return waits;
    }
    auto whole = co_await make_whole(pid);
    if (!whole) co_return tl::make_unexpected(whole.error());
    auto debugged = std::make_shared<DebuggedProcess>(home_, pid, false);
    home_.find_process(pid)->debugged = debugged;
    co_await debugged->begin(std::move(tell));
    if (!home_.find_process(pid)) {
        co_return fail(ESRCH, fmt::format("process {} has just ended", pid));
    }
    co_return debugged;
}

void Debugging::on_child(const HomeThread& parent, pid_t child, bool shares) {
    if (auto debugged = parent.process->debugged) debugged->on_child(&parent, child, shares);
}

void Debugging::inherit(const HomeThread& parent, HomeProcess& child, bool shares) {
    const auto& debugged = parent.process->debugged;
    if (debugged) child.debugged = debugged->for_child(child.pid, shares);
}

bool Debugging::waits_at_birth(const HomeProcess& process) {
    const auto& debugged = process.debugged;
    return debugged && debugged->birth() == DebuggedProcess::Birth::waits;
}

Task<std::optional<bool>> Debugging::wanted_at_birth(HomeThread& thread) {
    const pid_t pid = thread.tid;
    std::shared_ptr<DebuggedProcess> debugged = thread.process->debugged;
    using Birth = DebuggedProcess::Birth;
    if (!debugged) co_return false;
    while (debugged->birth() == Birth::waits) {
        co_await home_.remote_changed.wait();
        if (home_.find_thread(pid, pid) != &thread) co_return std::nullopt;
    }
    if (debugged->birth() == Birth::died) co_return std::nullopt;
    co_return debugged->birth() == Birth::wanted;
}

bool Debugging::takes_newborn(HomeThread& thread, const ThreadContext& context) {
    const auto debugged = thread.process->debugged;
    return debugged && debugged->takes_newborn(thread, context);
}

bool Debugging::takes_signal(HomeThread& thread, int signal) {
    auto debugged = thread.process->debugged;
    const bool dies = thread.process->dumped_for != 0;
    return debugged && !dies && !thread.helper && debugged->takes_signal(thread, signal);
}

bool Debugging::takes_remote_signal(HomeThread& thread, const siginfo_t& info, uint8_t hits) {
    auto debugged = thread.process->debugged;
    const bool dies = thread.process->dumped_for != 0;
    return debugged && !dies && debugged->takes_remote_signal(thread, info, hits);
}

bool Debugging::takes_call(HomeThread& thread) {
    auto info = trace::signal_info(thread.tid);
    if (!info || !stopped_call(*info)) return false;
    auto debugged = thread.process->debugged;
    if (!debugged || !debugged->takes_call(thread, *info, true)) passed_calls_.let_pass(thread.tid);
    return true;
}

bool Debugging::takes_remote_call(HomeThread& thread, const siginfo_t& info) {
    if (!stopped_call(info)) return false;
    auto debugged = thread.process->debugged;
    if (!debugged || !debugged->takes_call(thread, info, false)) let_handle(thread, info);
    return true;
}

// For a thread that has stopped at the acceptor before it gets the signal, or makes a call.
void Debugging::let_handle(const HomeThread& thread, const siginfo_t& info) {
    FrameBuilder frame;
    auto delivery = frame.session().initSignal();
    delivery.setPid(thread.process->pid);
    delivery.setTid(thread.tid);
    delivery.setFatal(true);
    delivery.setInfo(signal_bytes(info));
    home_.acceptors.at(thread.node).link.send(frame, Priority::urgent);
}

bool Debugging::takes_stop(pid_t tid, const WaitStatus& status) {
    if (!passed_calls_.takes_stop(tid, status)) return false;
    home_.call_stops ? home_.call_stops->on_call_stop(tid) : trace::resume(tid);
    return true;
}

void Debugging::equip(HomeThread& thread) {
    if (auto debugged = thread.process->debugged; debugged && !thread.helper) {
        debugged->traps().threads().equip(thread.tid);
    }
}

void Debugging::tell_of_traps(const HomeProcess& process) {
    const auto& debugged = process.debugged;
    if (debugged && process.started_remotely) debugged->traps().threads().tell(process.pid);
}

void Debugging::restore_signal(HomeThread& thread, int signal) {
    auto debugged = thread.process->debugged;
    const siginfo_t* info = debugged ? debugged->given().find(thread.tid, signal) : nullptr;
    if (info) trace::set_signal_info(thread.tid, *info);
}

void Debugging::came_back(HomeThread& thread, const siginfo_t& info) {
    if (auto debugged = thread.process->debugged) debugged->given().expect(thread.tid, info, true);
}

void Debugging::on_thread_end(HomeThread& thread, WaitStatus status) {
    if (auto debugged = thread.process->debugged) debugged->on_thread_end(thread, status);
}

bool Debugging::follows_exec(HomeProcess& process) {
    const bool follows = process.debugged && process.debugged->has_debugger();
    if (!follows) {
        process.debugged.reset();  // a child's, with breakpoints of the old image
    } else {
        process.debugged->on_exec();
    }
    return follows;
}

void Debugging::stop_at_exec(HomeThread& thread, ThreadContext context) {
    if (auto debugged = thread.process->debugged) {
        debugged->stop_at_exec(thread, std::move(context));
    }
}

void Debugging::lose(HomeProcess& process) {
    if (auto debugged = std::exchange(process.debugged, nullptr)) debugged->lose();
}

}  // namespace gpr::home
