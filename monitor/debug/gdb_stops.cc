// GdbConversation: how its processes continue and stop. They stop together: when one does, the
// others are stopped as well, and the debugger hears of one stop at a time.
#include <utility>

#include "monitor/debug/gdb_conversation.h"
#include "monitor/debug/gdb_register_packets.h"

namespace gpr::debug {

namespace {

// Of a process that only stopped with the others.
bool is_nothing(const StopReason& why) {
    return why.kind == StopReason::Kind::signal && why.value == 0;
}

// A child of which the debugger is not told goes on.
void let_child_go(const std::optional<StopReason>& why) {
    if (why && why->fork && why->fork->process) why->fork->process->detach();
}

}  // namespace

void GdbConversation::on_stop(const StopReason& why) {
    if (phase_ == Phase::over) return let_child_go(why);
    StopReason stop = why;
    if (stop.pid == 0) stop.pid = processes_.first();
    GdbProcesses::One* one = processes_.find(stop.pid);
    if (!one) {
        let_child_go(stop);
        return processes_.note_early(stop);
    }
    if (stop.kind == StopReason::Kind::exec) thread_locals_.forget(stop.pid);
    // A debugger that does not know exec events is told that the process has ended.
    if (stop.kind == StopReason::Kind::exec && !told_of_exec_) {
        one->process->detach();
        stop = {StopReason::Kind::exited, why.tid, 0};
        stop.pid = one->process->pid();
    }
    one->runs = false;
    if (phase_ == Phase::running && first_stopped_ == 0 && passes(stop)) {
        one->runs = true;
        const auto threads = GdbProcesses::threads_of(*one);
        one->process->go_on(resumption_->apply_with(stop.pid, threads, stop.tid, stop.value));
        return;
    }
    const bool halted = first_stopped_ != 0 && is_nothing(stop);
    const bool replaces = !one->untold || has_ended(stop);
    if (!halted) let_child_go(replaces ? one->untold : stop);
    if (!halted && replaces) one->untold = stop;
    // A process that was not resumed can only have ended: resume() will tell of that.
    if (phase_ != Phase::running) return;
    if (std::exchange(first_stopped_, first_stopped_ ? first_stopped_ : stop.pid) == 0) {
        halt_others();
    }
    if (processes_.any_runs()) return;
    const auto untold = take_untold(nullptr);
    first_stopped_ = 0;
    tell_stop(untold.value_or(stop));
    if (phase_ == Phase::stopped) start_work();
}

void GdbConversation::halt_others() {
    for (auto& [pid, one] : processes_.all()) {
        if (one.runs) one.process->interrupt(0);
    }
}

// Whether the signal is delivered without telling gdb. Not if the thread steps, because it would
// arrive in the signal's handler.
bool GdbConversation::passes(const StopReason& why) {
    if (why.kind != StopReason::Kind::signal || why.call || why.fork || !resumption_ ||
        !passed_signals_.contains(why.value))
        return false;
    if (interrupted_ && why.value == SIGINT) return false;
    const auto continued = resumption_->apply(why.pid, {why.tid}, 0);
    return continued.empty() || !continued.front().steps;
}

// how: of what the debugger wants to continue, or of what has ended. Null: all, that for which the
// others stopped first.
std::optional<StopReason> GdbConversation::take_untold(const Resumption* how) {
    GdbProcesses::One* found = processes_.find(first_stopped_);
    if (found && !found->untold) found = nullptr;
    for (auto& [pid, one] : processes_.all()) {
        const bool wanted = one.untold && (!how || has_ended(*one.untold) || how->concerns(pid));
        if (!found && wanted) found = &one;
    }
    if (!found) return std::nullopt;
    found->parent.reset();
    return std::exchange(found->untold, std::nullopt);
}

void GdbConversation::tell_stop(const StopReason& why) {
    phase_ = Phase::stopped;
    stop_ = why;
    const auto& fork = why.fork;
    if (fork && fork->process && threads_.names_process()) {
        processes_.add_child(*fork, why.pid, why.tid);
        thread_locals_.inherit(why.pid, fork->child);
    } else {
        let_child_go(why);
    }
    const GdbProcesses::One* one = processes_.find(why.pid);
    if (!one) return;
    if (!has_ended(why)) threads_.choose(why.pid, why.tid);
    send(stop_reply(*one->process, threads_, why));
    stop_.fork.reset();
    if (has_ended(why)) drop(why.pid);
}

std::optional<Resumption> GdbConversation::resumption_of(std::string_view packet) {
    constexpr std::string_view with_threads = "vCont;";
    if (packet.starts_with(with_threads)) {
        return Resumption::parse(packet.substr(with_threads.size() - 1), threads_);
    }
    const pid_t meant = threads_.continued().tid;
    const pid_t tid = meant > 0 ? meant : stop_.tid > 0 ? stop_.tid : threads_.chosen();
    return Resumption::parse_old(packet, tid);
}

Task<bool> GdbConversation::prepare_for(std::string packet) {
    // What these ask of a child that has just been born needs nothing of it.
    constexpr std::string_view leave_it = "?HTDkQz";
    const bool is_query = packet.starts_with('q') && !packet.starts_with("qXfer:auxv") &&
                          !packet.starts_with("qXfer:siginfo") && !packet.starts_with("qGetTLS");
    const bool continues = packet.starts_with("vCont;");
    if (packet.empty() || is_query || leave_it.find(packet.front()) != std::string_view::npos ||
        (packet.front() == 'v' && !continues))
        co_return true;
    std::vector<std::shared_ptr<Debuggee>> needed;
    if (continues) {
        const auto how = resumption_of(packet);
        for (auto& [pid, one] : processes_.all()) {
            if (how && how->concerns(pid) && !one.untold) needed.push_back(one.process);
        }
    } else if (const auto* one = threads_.chosen_process(); one && !one->untold) {
        needed.push_back(one->process);
    }
    bool ready = true;
    for (const auto& each : needed) {
        const bool its = co_await each->prepare();
        ready = ready && its;
    }
    co_return ready || continues;
}

GdbConversation::Answer GdbConversation::resume(std::optional<Resumption> how) {
    if (!how) return "E16";
    if (const auto untold = take_untold(&*how)) {
        tell_stop(*untold);
        return std::nullopt;
    }
    interrupted_ = false;
    if (let_go(*how)) return std::nullopt;
    // The threads that were to continue have ended: no stop would follow.
    stop_.value = 0;
    if (!processes_.find(stop_.pid)) stop_ = {StopReason::Kind::signal, threads_.chosen(), 0};
    if (const auto* one = threads_.chosen_process(); one && !processes_.find(stop_.pid)) {
        stop_.pid = one->process->pid();
    }
    tell_stop(StopReason(stop_));
    return std::nullopt;
}

// False if nobody continues.
bool GdbConversation::let_go(const Resumption& how) {
    std::vector<std::pair<std::shared_ptr<Debuggee>, std::vector<Continuation>>> going;
    for (auto& [pid, one] : processes_.all()) {
        if (!how.concerns(pid)) continue;
        const auto threads = GdbProcesses::threads_of(one);
        auto continuations = how.apply(pid, threads, stop_.tid);
        if (continuations.empty() && !threads.empty()) continue;
        // A process without threads is about to end, and on_stop() will tell of that.
        one.runs = true;
        one.parent.reset();
        going.emplace_back(one.process, std::move(continuations));
    }
    if (going.empty()) return false;
    resumption_ = how;
    phase_ = Phase::running;
    for (const auto& [process, continuations] : going) {
        if (!continuations.empty()) process->go_on(continuations);
    }
    return true;
}

void GdbConversation::close() {
    if (phase_ == Phase::over) return;
    for (auto& [pid, one] : processes_.all()) {
        const bool ended = one.untold && has_ended(*one.untold);
        if (!ended) one.process->detach();
        let_child_go(one.untold);
    }
    phase_ = Phase::over;
    waiting_.clear();
}

void GdbConversation::kill(pid_t pid) {
    GdbProcesses::One* one = processes_.find(pid);
    if (!one) return;
    if (!one->untold || !has_ended(*one->untold)) one->process->kill();
    drop(pid);
}

void GdbConversation::detach(pid_t pid) {
    GdbProcesses::One* one = processes_.find(pid);
    if (!one) return;
    if (!one->untold || !has_ended(*one->untold)) one->process->detach();
    drop(pid);
}

void GdbConversation::drop(pid_t pid) {
    if (const GdbProcesses::One* one = processes_.find(pid)) let_child_go(one->untold);
    thread_locals_.forget(pid);
    processes_.remove(pid);
    if (processes_.all().empty()) end();
}

}  // namespace gpr::debug
