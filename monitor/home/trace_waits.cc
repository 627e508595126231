#include "monitor/home/trace_waits.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "base/file_text.h"
#include "monitor/home/debugging.h"
#include "monitor/home/home.h"
#include "monitor/home/signals.h"
#include "monitor/home/tracing.h"
#include "monitor/tracee/fault_origin.h"
#include "monitor/tracee/process_stat.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/remote_memory_raw.h"

namespace gpr::home {

using ptrace::Tracee;
using ptrace::WaitCall;

namespace {

constexpr uint64_t call_bytes = 2;  // of a `syscall` instruction

std::optional<WaitCall> call_in(const HomeThread& thread, const user_regs_struct& regs) {
    const uint64_t args[6] = {regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9};
    return ptrace::wait_call(thread.process->pid, regs.orig_rax, args);
}

bool is_interrupted(const user_regs_struct& regs) {
    return trace::is_restart(static_cast<long>(regs.rax));
}

// Whether the thread may be in this call; if it is not in any now, it may come to be.
bool may_be_in(pid_t tid, uint64_t number) {
    const std::string text = text_of(fmt::format("/proc/{}/syscall", tid));
    return text.starts_with("running") || text.starts_with(fmt::format("{} ", number));
}

// The CPU time of the tracee so far, as far as ticks count it.
rusage usage_of(const Tracee& tracee) {
    constexpr size_t user_field = 11;  // of those after the name: proc_pid_stat(5)
    rusage used{};
    auto fields = stat_fields(fmt::format("/proc/{}", tracee.process));
    if (fields.size() <= user_field + 1) return used;
    const long ticks = sysconf(_SC_CLK_TCK), microseconds = 1'000'000 / ticks;
    auto time_of = [&](const std::string& field) {
        const long count = std::stol(field);
        return timeval{count / ticks, count % ticks * microseconds};
    };
    used.ru_utime = time_of(fields[user_field]);
    used.ru_stime = time_of(fields[user_field + 1]);
    return used;
}

template <class Value>
bool put(const RemoteMemory& memory, uint64_t at, const Value& value) {
    return at == 0 || memory.write_exact({at}, &value, sizeof value);
}

}  // namespace

bool TraceWaits::on_call(HomeThread& thread, user_regs_struct regs) {
    waiting_.erase(thread.tid);
    const auto call = call_in(thread, regs);
    if (!call) return false;
    const pid_t pid = thread.process->pid;
    const std::vector<Tracee*> tracees = home_.debugging.tracing().tracees_of(pid);
    if (tracees.empty()) {  // but a child may yet want to be traced
        waiting_[thread.tid] = {.process = pid, .call = *call};
        return false;
    }
    if (answer(thread, regs, *call)) {
        trace::resume(thread.tid);
        return true;
    }
    // The kernel knows only children of the process.
    const bool unknown = std::ranges::any_of(tracees, [&](const Tracee* tracee) {
        return tracee->end_is_ours() && call->selects(*tracee, thread.tid);
    });
    waiting_[thread.tid] = {.process = pid, .call = *call, .until_exit = unknown};
    if (unknown) {
        trace::resume_to_call(thread.tid);
    } else {
        trace::resume(thread.tid);
    }
    return true;
}

// The registers are of a thread that stands before the call, or has been interrupted in it.
bool TraceWaits::answer(HomeThread& thread, user_regs_struct& regs, const WaitCall& call) {
    for (Tracee* tracee : home_.debugging.tracing().tracees_of(thread.process->pid)) {
        if (!call.takes(*tracee, thread.tid)) continue;
        const bool written = write_news(thread.process->pid, call, *tracee);
        const long result = written ? (call.with_info ? 0 : tracee->tid) : -EFAULT;
        regs.rax = static_cast<uint64_t>(result);
        regs.orig_rax = ~0UL;
        trace::set_registers(thread.tid, regs);
        if (call.leaves_it()) return true;
        tracee->waited_for = true;
        if (tracee->state == Tracee::State::ended) home_.debugging.tracing().reap(tracee->tid);
        return true;
    }
    return false;
}

bool TraceWaits::write_news(pid_t process, const WaitCall& call, const Tracee& tracee) const {
    auto memory = RemoteMemory::open(process);
    if (!memory) return false;
    if (!put(*memory, call.usage_at, usage_of(tracee))) return false;
    if (!call.with_info) return put(*memory, call.status_at, tracee.status);
    return put(*memory, call.status_at, ptrace::news_of(tracee, ptrace::user_of(tracee.process)));
}

void TraceWaits::wake_for(const Tracee& tracee) {
    for (auto& [tid, waiting] : waiting_) {
        if (waiting.process != tracee.tracers_process || waiting.interrupted) continue;
        if (!waiting.call.takes(tracee, tid)) continue;
        const uint64_t number = waiting.paused ? SYS_pause : waiting.call.number;
        if (!may_be_in(tid, number)) continue;
        waiting.interrupted = true;
        trace::interrupt(tid);
    }
}

bool TraceWaits::takes_stop(HomeThread& thread, WaitStatus status) {
    auto it = waiting_.find(thread.tid);
    if (it == waiting_.end() || status.ended()) return false;
    Waiting& waiting = it->second;
    auto regs = trace::registers(thread.tid);
    if (!regs) return false;
    if (status.kind == WaitStatus::Kind::syscall_stop && waiting.until_exit) {
        waiting.until_exit = false;
        on_made(thread, waiting, *regs);
        return true;
    }
    if (waiting.paused) {
        const bool in_pause = regs->orig_rax == SYS_pause && is_interrupted(*regs);
        const bool before = in_program(*regs) && regs->rax == SYS_pause;
        if (in_pause) {
            regs->orig_rax = waiting.call.number;
            regs->rax = static_cast<uint64_t>(-trace::restart_sys);
        } else if (before) {
            regs->rax = waiting.call.number;
        }
        if (in_pause || before) trace::set_registers(thread.tid, *regs);
    }
    const Waiting was = std::move(waiting);
    waiting_.erase(it);
    if (status.kind != WaitStatus::Kind::trap_stop || !was.interrupted) return false;
    const bool in_call = regs->orig_rax == was.call.number && is_interrupted(*regs);
    if (!in_call || !answer(thread, *regs, was.call)) {
        if (!in_call) home_.signals.go_on_waiting(thread);
        // Otherwise the kernel lets it call again.
    }
    trace::resume(thread.tid);
    return true;
}

// The kernel has made the call, and does not know of all tracees.
void TraceWaits::on_made(HomeThread& thread, Waiting& waiting, user_regs_struct regs) {
    const auto result = static_cast<long>(regs.rax);
    if (result == -ECHILD && waiting.call.returns_at_once()) {
        regs.rax = 0;
        trace::set_registers(thread.tid, regs);
        auto memory = RemoteMemory::open(thread.process->pid);
        if (memory && waiting.call.with_info) put(*memory, waiting.call.status_at, siginfo_t{});
        waiting_.erase(thread.tid);
    } else if (result == -ECHILD) {
        user_regs_struct answered = regs;
        answered.orig_rax = ~0UL;
        if (answer(thread, answered, waiting.call)) {
            waiting_.erase(thread.tid);
        } else {
            regs.rip -= call_bytes;
            regs.rax = SYS_pause;
            regs.orig_rax = ~0UL;
            trace::set_registers(thread.tid, regs);
            waiting.paused = true;
        }
    }
    if (!trace::is_restart(result) && result != -ECHILD) waiting_.erase(thread.tid);
    trace::resume(thread.tid);
}

}  // namespace gpr::home
