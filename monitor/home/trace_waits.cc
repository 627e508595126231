#include "monitor/home/trace_waits.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file_text.h"
#include "monitor/home/crossings.h"
#include "monitor/home/debugging.h"
#include "monitor/home/helper_calls.h"
#include "monitor/home/home.h"
#include "monitor/home/proxy_calls.h"
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

constexpr std::chrono::milliseconds looks_every{1};
constexpr size_t usage_place = 256;  // in a thread's scratch memory
constexpr uint64_t call_bytes = 2;   // of a `syscall` instruction

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
std::vector<std::byte> bytes_of(const Value& value) {
    std::vector<std::byte> bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}

std::vector<std::byte> news_in_bytes(const WaitCall& call, const Tracee& tracee) {
    if (!call.with_info) return bytes_of(tracee.status);
    return bytes_of(ptrace::news_of(tracee, ptrace::user_of(tracee.process)));
}

template <class Value>
bool put(const RemoteMemory& memory, uint64_t at, const Value& value) {
    return at == 0 || memory.write_exact({at}, &value, sizeof value);
}

// Whether the kernel knows a process that is waited for, beside tracees that are no children.
bool has_child(const HomeProcess& process, const WaitCall& call) {
    if (call.which == WaitCall::Which::one) return false;
    return std::ranges::any_of(process.threads, [&](const auto& entry) {
        return !text_of(fmt::format("/proc/{}/task/{}/children", process.pid, entry.first)).empty();
    });
}

// The thread has been interrupted before its call.
void pause_instead(pid_t tid, user_regs_struct regs) {
    regs.rip -= call_bytes;
    regs.rax = SYS_pause;
    regs.orig_rax = ~0UL;
    trace::set_registers(tid, regs);
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
    const bool unknown = !knows_all(pid, thread, *call);
    waiting_[thread.tid] = {.process = pid, .call = *call, .until_exit = unknown};
    if (unknown) {
        trace::resume_to_call(thread.tid);
    } else {
        trace::resume(thread.tid);
    }
    return true;
}

// A thread of a split process leaves for the acceptor, from where it asks once more.
bool TraceWaits::on_notification(HomeThread& thread, const Notification& n) {
    HomeProcess& process = *thread.process;
    if (home_.call_stops) return false;
    waiting_.erase(n.tid);
    const auto call = ptrace::wait_call(process.pid, n.number, n.args);
    if (!call) return false;
    waiting_[n.tid] = {.process = process.pid, .call = *call};
    if (home_.debugging.tracing().tracees_of(process.pid).empty()) return false;
    if (process.fragment) {
        waiting_.erase(n.tid);
        spawn(home_.crossings.leave_at_call(process, thread, thread.last_away, true));
        return true;
    }
    spawn(serve_notified(process.pid, n, *call));
    return true;
}

Task<void> TraceWaits::serve_notified(pid_t pid, Notification n, WaitCall call) {
    std::shared_ptr<ProxyCall> proxy = co_await home_.proxy_calls.begin(pid, n);
    if (!proxy) co_return;
    const HomeThread& thread = *home_.find_thread(pid, n.tid);
    const auto told = tell(thread, call);
    const bool unknown =
        !told && !knows_all(pid, thread, call) && !has_child(*thread.process, call);
    if (told) {
        waiting_.erase(n.tid);
        home_.proxy_calls.finish(pid, n, proxy, *told);
    } else if (unknown && call.returns_at_once()) {
        waiting_.erase(n.tid);
        auto memory = RemoteMemory::open(pid);
        if (memory && call.with_info) put(*memory, call.status_at, siginfo_t{});
        home_.proxy_calls.finish(pid, n, proxy, 0);
    } else if (unknown) {
        waiting_[n.tid].to_pause = true;
        home_.proxy_calls.make_again(pid, n, proxy);
    } else {
        home_.proxy_calls.finish(pid, n, proxy, std::nullopt);
    }
}

// The kernel knows only children of the process.
bool TraceWaits::knows_all(pid_t process, const HomeThread& thread, const WaitCall& call) const {
    const std::vector<Tracee*> tracees = home_.debugging.tracing().tracees_of(process);
    return std::ranges::none_of(tracees, [&](const Tracee* tracee) {
        return tracee->end_is_ours() && call.selects(*tracee, thread.tid);
    });
}

std::optional<int64_t> TraceWaits::tell(const HomeThread& thread, const WaitCall& call) {
    for (Tracee* tracee : home_.debugging.tracing().tracees_of(thread.process->pid)) {
        if (!call.takes(*tracee, thread.tid)) continue;
        const bool written = write_news(thread.process->pid, call, *tracee);
        const int64_t result = written ? (call.with_info ? 0 : tracee->tid) : -EFAULT;
        if (!call.leaves_it()) take(*tracee);
        return result;
    }
    return std::nullopt;
}

// The registers are of a thread that stands before the call, or has been interrupted in it.
bool TraceWaits::answer(HomeThread& thread, user_regs_struct& regs, const WaitCall& call) {
    const auto told = tell(thread, call);
    if (!told) return false;
    regs.rax = static_cast<uint64_t>(*told);
    regs.orig_rax = ~0UL;
    trace::set_registers(thread.tid, regs);
    return true;
}

void TraceWaits::take(Tracee& tracee) {
    tracee.waited_for = true;
    if (tracee.state == Tracee::State::ended) home_.debugging.tracing().reap(tracee.tid);
}

bool TraceWaits::write_news(pid_t process, const WaitCall& call, const Tracee& tracee) const {
    auto memory = RemoteMemory::open(process);
    if (!memory) return false;
    if (!put(*memory, call.usage_at, usage_of(tracee))) return false;
    if (!call.with_info) return put(*memory, call.status_at, tracee.status);
    return put(*memory, call.status_at, ptrace::news_of(tracee, ptrace::user_of(tracee.process)));
}

void TraceWaits::wake_for(const Tracee& tracee) {
    HomeProcess* tracers = home_.find_process(tracee.tracers_process);
    if (tracers && tracers->fragment) {
        for (const auto& [tid, thread] : tracers->threads) {
            if (thread->remote()) spawn(wake_away(tracee.tid, tracers->pid, tid));
        }
    }
    for (auto& [tid, waiting] : waiting_) {
        if (waiting.process != tracee.tracers_process || waiting.interrupted) continue;
        if (!waiting.call.takes(tracee, tid)) continue;
        const HomeThread* thread = home_.find_thread(waiting.process, tid);
        const bool has_left = thread && thread->stub && thread->stub->in_stub();
        if (!thread || thread->remote() || has_left) continue;  // it is woken there
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
    if (waiting.to_pause && status.kind == WaitStatus::Kind::trap_stop) {
        waiting.to_pause = waiting.interrupted = false;
        const bool before = static_cast<long>(regs->rax) == -trace::restart_nointr;
        if (before && answer(thread, *regs, waiting.call)) {  // there is news meanwhile
            waiting_.erase(it);
        } else if (before) {
            pause_instead(thread.tid, *regs);
            waiting.paused = true;
        }
        trace::resume(thread.tid);
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
    const bool asks_again = thread.process->fragment != nullptr;  // on_notification()
    if (!in_call || asks_again || !answer(thread, *regs, was.call)) {
        if (!in_call) home_.signals.go_on_waiting(thread);
        // Otherwise the kernel lets it call again.
    }
    trace::resume(thread.tid);
    return true;
}

// A wait that began before there was a tracee.
Task<void> TraceWaits::wake_away(pid_t tracee, pid_t pid, pid_t tid) {
    for (;;) {
        const Tracee* its = home_.debugging.tracing().find(tracee);
        HomeThread* thread = home_.find_thread(pid, tid);
        if (!its || !its->has_news() || !thread) co_return;
        if (!thread->is_in(HomeThread::Business::call)) co_return;
        if (may_be_in(tid, SYS_wait4) || may_be_in(tid, SYS_waitid)) {
            woken_.insert(tid);
            thread->interrupted = true;
            trace::interrupt(tid);
        }
        co_await home_.loop.sleep(looks_every);
    }
}

Task<bool> TraceWaits::put_away(std::shared_ptr<Fragment> fragment, WaitCall call,
                                std::vector<std::byte> news, std::vector<std::byte> usage) {
    std::span<const std::byte> told(news), used(usage);
    if (call.status_at != 0) {
        const bool put = co_await home_.pager.memory.write(*fragment, {call.status_at}, told);
        if (!put) co_return false;
    }
    if (call.usage_at == 0 || used.empty()) co_return true;
    const bool put = co_await home_.pager.memory.write(*fragment, {call.usage_at}, used);
    co_return put;
}

// As if the call had WNOHANG, and with its result where the program wants it. Nothing: there is
// none yet.
Task<std::optional<int64_t>> TraceWaits::make_without_waiting(pid_t pid, pid_t tid, WaitCall call,
                                                              std::array<uint64_t, 6> args) {
    HomeThread* thread = home_.find_thread(pid, tid);
    std::shared_ptr<StubThread> stub = thread->stub;
    std::shared_ptr<Fragment> fragment = thread->process->fragment;
    auto guard = co_await stub->lock();
    const uint64_t scratch = stub->scratch_address().value;
    std::vector<Call> calls{Call{call.number, {}, 0}};
    std::ranges::copy(args, calls[0].args);
    stub->scratch().part(0, usage_place + sizeof(rusage)).clear();
    // wait_without() supplies the place of a siginfo_t.
    calls[0].args[call.with_info ? 2 : 1] = call.with_info ? 0 : scratch;
    calls[0].args[call.with_info ? 3 : 2] |= WNOHANG;
    calls[0].args[call.with_info ? 4 : 3] = scratch + usage_place;
    calls[0].number |= GPR_CALL_OF_PROGRAM;
    hide_helpers(*thread->process, false, calls[0]);
    co_await wait_without(home_.orphaned_helpers, *stub, calls);
    if (stub->dead()) co_return -ESRCH;
    const int64_t result = calls[0].result;
    std::vector<std::byte> news(call.with_info ? sizeof(siginfo_t) : sizeof(int));
    std::vector<std::byte> usage(sizeof(rusage));
    stub->scratch().read(0, news);
    stub->scratch().read(usage_place, usage);
    guard.release();
    siginfo_t info{};
    if (call.with_info) std::memcpy(&info, news.data(), sizeof info);
    const bool nothing = result == 0 && (!call.with_info || info.si_pid == 0);
    if (nothing) co_return std::nullopt;
    if (result < 0) co_return result;
    const bool put = co_await put_away(fragment, call, std::move(news), std::move(usage));
    co_return put ? result : -EFAULT;
}

Task<std::optional<int64_t>> TraceWaits::serve_forwarded(pid_t pid, pid_t tid, uint32_t number,
                                                         std::array<uint64_t, 6> args) {
    woken_.erase(tid);
    Tracing& tracing = home_.debugging.tracing();
    const auto call = ptrace::wait_call(pid, number, args.data());
    if (!call || tracing.tracees_of(pid).empty()) co_return std::nullopt;
    for (;;) {
        HomeThread* thread = home_.find_thread(pid, tid);
        if (!thread || !thread->stub || thread->stub->dead()) co_return -ESRCH;
        // Looked at first: a signal that comes from here on may come with news, which count first.
        const bool interrupted = thread->interrupted, passed = thread->passed.has_value();
        bool unknown = false;
        for (Tracee* tracee : tracing.tracees_of(pid)) {
            unknown = unknown || (tracee->end_is_ours() && call->selects(*tracee, tid));
            if (!call->takes(*tracee, tid)) continue;
            const pid_t of = tracee->tid;
            const int64_t result = call->with_info ? 0 : of;
            std::shared_ptr<Fragment> fragment = thread->process->fragment;
            std::vector<std::byte> news = news_in_bytes(*call, *tracee);
            std::vector<std::byte> usage = bytes_of(usage_of(*tracee));
            if (!call->leaves_it()) take(*tracee);
            const bool put = co_await put_away(fragment, *call, std::move(news), std::move(usage));
            co_return put ? result : -EFAULT;
        }
        const auto made = co_await make_without_waiting(pid, tid, *call, args);
        if (made && !(*made == -ECHILD && unknown)) co_return *made;
        if (!home_.find_thread(pid, tid)) co_return -ESRCH;
        if (interrupted) co_return -EINTR;
        if (passed) co_return -trace::restart_sys;
        if (call->returns_at_once()) {
            std::vector<std::byte> nobody(call->with_info ? sizeof(siginfo_t) : 0), none;
            HomeProcess* process = home_.find_process(pid);
            if (!process || !process->fragment) co_return -ESRCH;
            std::shared_ptr<Fragment> fragment = process->fragment;
            if (call->with_info)
                co_await put_away(fragment, *call, std::move(nobody), std::move(none));
            co_return 0;
        }
        co_await home_.loop.sleep(looks_every);
    }
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
