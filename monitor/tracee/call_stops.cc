#include "monitor/tracee/call_stops.h"

#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/result.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/resume_request.h"
#include "syscall/filter_verdict.h"

namespace gpr {

namespace {

constexpr uint64_t no_call = ~0UL;  // in orig_rax: the kernel skips the call and keeps rax

// Any stop is the one that PTRACE_INTERRUPT has asked for (ptrace_stop() in kernel/signal.c).
// Whoever wants to stop the thread does not count those at calls: it stops once more.
void go_on(pid_t tid) {
    if (!trace::is_stop_wanted(tid)) return trace::resume(tid);
    trace::interrupt(tid);
    trace::resume_past_calls(tid);
}

// A thread in pause(2) stops at once. False if it is gone, or does not stop: its tracer must not be
// held up by it, and hears of a later stop as of any other.
bool await_stop(pid_t tid, int& raw) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    for (;;) {
        const pid_t got = waitpid(tid, &raw, __WALL | WNOHANG);
        if (got != 0 || std::chrono::steady_clock::now() > until) return got == tid;
        sched_yield();
    }
}

// False if the thread is gone.
bool look_at_call(pid_t tid, __ptrace_syscall_info& info) {
    return ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof info, &info) > 0;
}

}  // namespace

CallStops::CallStops(Waits& waits, std::vector<sock_filter> filter, Handler handler,
                     Concerns concerns)
    : waits_(waits),
      filter_(std::move(filter)),
      handler_(std::move(handler)),
      concerns_(std::move(concerns)) {
    waits_.look_first([this](pid_t tid, const WaitStatus& status) { on_other_stop(tid, status); });
}

CallStops::~CallStops() { waits_.look_first(nullptr); }

void CallStops::begin(pid_t tid) { trace::go_on_by(tid, PTRACE_SYSCALL); }
void CallStops::end(pid_t tid) { trace::go_on_by(tid, PTRACE_CONT); }

void CallStops::on_call_stop(pid_t tid) {
    __ptrace_syscall_info info{};
    if (!look_at_call(tid, info)) return;
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return on_exit(tid);
    Notification call{0, tid, static_cast<uint32_t>(info.entry.nr), {}, info.instruction_pointer};
    std::ranges::copy(info.entry.args, call.args);
    on_entry(tid, call, info.arch);
}

void CallStops::on_entry(pid_t tid, const Notification& call, uint32_t architecture) {
    on_thread_gone(tid);  // its earlier call was interrupted and is made again
    const auto passing = passing_.find(tid);
    const bool passes = passing != passing_.end() && passing->second == call.instruction_pointer;
    if (passing != passing_.end()) passing_.erase(passing);
    if (passes) return trace::resume(tid);
    if (trace::is_stop_wanted(tid)) {  // before the call, then
        if (auto regs = trace::registers(tid)) trace::take_call_back(tid, *regs);
        return go_on(tid);
    }
    seccomp_data data{static_cast<int>(call.number), architecture, call.instruction_pointer, {}};
    std::ranges::copy(call.args, data.args);
    const uint32_t verdict = filter_verdict(filter_, data);
    switch (verdict & SECCOMP_RET_ACTION_FULL) {
        case SECCOMP_RET_USER_NOTIF: return report(tid, call);
        case SECCOMP_RET_ERRNO:
            if (auto regs = trace::registers(tid)) {
                answer(tid, *regs, call.number, -static_cast<int64_t>(verdict & SECCOMP_RET_DATA));
            }
            return;
        default: return concerns_(call) ? report(tid, call) : trace::resume(tid);
    }
}

void CallStops::report(pid_t tid, Notification call) {
    auto regs = trace::registers(tid);
    if (!regs) return;
    call.id = next_id_++;
    callers_[tid] = {call.id, State::stopped, *regs};
    by_id_[call.id] = tid;
    handler_(call);
    const auto caller = callers_.find(tid);
    if (caller == callers_.end() || caller->second.id != call.id ||
        caller->second.state != State::stopped) {
        return;
    }
    caller->second.state = State::pausing;
    regs->orig_rax = SYS_pause;
    trace::set_registers(tid, *regs);
    trace::resume_past_calls(tid);
}

void CallStops::on_exit(pid_t tid) {
    const auto result = at_exit_.find(tid);
    if (result != at_exit_.end()) {
        if (auto regs = trace::registers(tid)) {
            regs->orig_rax = result->second.first;
            regs->rax = static_cast<uint64_t>(result->second.second);
            trace::set_registers(tid, *regs);
        }
        at_exit_.erase(result);
        trace::interrupt(tid);  // the kernel makes it again only on the way to a signal or a stop
    }
    go_on(tid);
}

// The thread is at the entry of the call.
void CallStops::answer(pid_t tid, user_regs_struct regs, uint64_t number, int64_t result) {
    if (trace::is_restart(result)) at_exit_[tid] = {number, result};
    regs.rax = static_cast<uint64_t>(result);
    regs.orig_rax = no_call;
    trace::set_registers(tid, regs);
    trace::resume(tid);
}

bool CallStops::reply_raw(uint64_t id, int64_t result) {
    const auto found = by_id_.find(id);
    if (found == by_id_.end()) return false;
    const pid_t tid = found->second;
    Caller& caller = callers_.at(tid);
    const uint64_t number = caller.regs.orig_rax;
    if (caller.state == State::stopped) {
        const user_regs_struct regs = caller.regs;
        on_thread_gone(tid);
        answer(tid, regs, number, result);
        return true;
    }
    user_regs_struct regs{};
    bool others_wait = false;
    if (!stop_pausing(tid, caller, regs, others_wait)) return false;
    on_thread_gone(tid);
    regs.rax = static_cast<uint64_t>(result);
    regs.orig_rax = trace::is_restart(result) ? number : no_call;
    trace::set_registers(tid, regs);
    if (!others_wait) trace::resume(tid);
    return true;
}

bool CallStops::let_it_run(uint64_t id) {
    const auto found = by_id_.find(id);
    if (found == by_id_.end()) return false;
    const pid_t tid = found->second;
    Caller& caller = callers_.at(tid);
    if (caller.state == State::stopped) {
        on_thread_gone(tid);
        trace::resume(tid);
        return true;
    }
    user_regs_struct regs{};
    bool others_wait = false;
    if (!stop_pausing(tid, caller, regs, others_wait)) return false;
    passing_[tid] = caller.regs.rip;
    regs.rax = caller.regs.orig_rax;
    regs.rip -= 2;
    regs.orig_rax = no_call;
    on_thread_gone(tid);
    trace::set_registers(tid, regs);
    if (!others_wait) trace::resume(tid);
    return true;
}

// others_wait: somebody else has asked for this stop, and gets it.
bool CallStops::stop_pausing(pid_t tid, Caller& caller, user_regs_struct& regs, bool& others_wait) {
    if (caller.state != State::pausing) return false;
    others_wait = trace::is_stop_wanted(tid);
    if (!others_wait) ptrace(PTRACE_INTERRUPT, tid, nullptr, 0L);
    int raw = 0;
    if (!await_stop(tid, raw)) return false;
    const WaitStatus status = WaitStatus::decode(raw);
    const bool ours = status.kind == WaitStatus::Kind::trap_stop;
    Result<user_regs_struct> now;
    if (ours) now = trace::registers(tid);
    if (ours && now) regs = *now;
    // Otherwise a signal or the end came first: its stop is for all others.
    if (!ours) on_other_stop(tid, status);
    if (!ours || others_wait) waits_.deliver_later(tid, raw);
    return ours && now.has_value();
}

// As a filter's report ends when the thread stops: the call begins anew, unless a handler without
// SA_RESTART runs.
void CallStops::on_other_stop(pid_t tid, const WaitStatus& status) {
    // A call that has not been made yet: a handler, or another node, may come before it, and it is
    // reported again.
    if (status.kind != WaitStatus::Kind::syscall_stop) passing_.erase(tid);
    const auto found = callers_.find(tid);
    if (found == callers_.end() || found->second.state != State::pausing) return;
    Caller& caller = found->second;
    caller.state = State::interrupted;
    by_id_.erase(caller.id);
    if (status.ended()) return;
    auto regs = trace::registers(tid);
    const bool in_pause = regs && regs->orig_rax == SYS_pause &&
                          static_cast<long>(regs->rax) == -trace::restart_nohand;
    if (!in_pause) return;
    regs->orig_rax = caller.regs.orig_rax;
    regs->rax = static_cast<uint64_t>(-trace::restart_sys);
    trace::set_registers(tid, *regs);
}

bool CallStops::still_valid(uint64_t id) const { return by_id_.contains(id); }

void CallStops::on_thread_gone(pid_t tid) {
    const auto found = callers_.find(tid);
    if (found == callers_.end()) return;
    by_id_.erase(found->second.id);
    callers_.erase(found);
}

}  // namespace gpr
