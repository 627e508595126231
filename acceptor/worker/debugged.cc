#include "acceptor/worker/debugged.h"

#include <sys/syscall.h>

#include <vector>

#include "acceptor/worker/crossings.h"
#include "acceptor/worker/signals.h"
#include "acceptor/worker/threads.h"
#include "acceptor/worker/worker.h"
#include "base/log.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::worker {

namespace {
// The park cannot be interrupted here: the thread stops on its way to a call.
Task<void> leave_park(StubThread& stub) { co_await stub.call(SYS_getpid); }
}  // namespace

bool Debugged::takes_mirrored(const Frame& frame) {
    auto call = frame->session().getMirror();
    if (call.getNumber() != SYS_ptrace) return false;
    std::vector<uint64_t> numbers;
    for (const uint64_t number : call.getArgs()) numbers.push_back(number);
    const RemoteProcess* process = worker_.find_process(call.getPid());
    auto traps = traps_from(numbers);
    if (process && traps) watched_[process->host_pid] = std::move(*traps);
    return true;
}

DebugTraps Debugged::wanted(const RemoteThread& thread) const {
    const auto watched = watched_.find(thread.process->host_pid);
    if (watched == watched_.end()) return {};
    DebugTraps traps = watched->second.traps;
    const auto its = watched->second.returns.find(thread.tid);
    if (its == watched->second.returns.end()) return traps;
    // One register, which home has left free.
    size_t number = 0;
    while (number + 1 < traps.addresses.size() && (traps.control >> (2 * number) & 3)) number++;
    traps.addresses[number] = its->second.value;
    traps.control |= 1ULL << (2 * number);
    return traps;
}

bool Debugged::is_equipped(const RemoteThread& thread) const {
    const auto given = given_.find(thread.host_tid);
    return (given == given_.end() ? DebugTraps{} : given->second) == wanted(thread);
}

Task<void> Debugged::equip(RemoteThread& thread) {
    const pid_t pid = thread.process->pid, tid = thread.tid, host_tid = thread.host_tid;
    for (;;) {
        RemoteThread* same = worker_.find_thread(pid, tid);
        if (same != &thread || is_equipped(thread)) co_return;
        co_await thread.stub->parked();
        if (worker_.find_thread(pid, tid) != &thread || thread.stub->dead()) co_return;
        trace::interrupt(host_tid);
        spawn(leave_park(*thread.stub));
        WaitStatus status = co_await worker_.threads.next_stop(thread, true);
        if (status.ended()) co_return;
        if (status.kind != WaitStatus::Kind::trap_stop) {
            worker_.on_wait(host_tid, status);
            continue;
        }
        const DebugTraps traps = wanted(thread);
        auto set = set_debug_traps(host_tid, traps);
        given_[host_tid] = traps;
        if (!set && set.error().code != ESRCH) spdlog::warn("{}", set.error().message());
        trace::resume(host_tid);
    }
}

bool Debugged::takes_stop(pid_t host_tid, const WaitStatus& status) {
    if (status.ended()) {
        watched_.erase(host_tid);
        given_.erase(host_tid);
    }
    const bool passes = passed_calls_.takes_stop(host_tid, status);
    if (passes) trace::resume(host_tid);
    return passes;
}

bool Debugged::takes_call(RemoteThread& thread, const siginfo_t& info) {
    if (!stopped_call(info)) return false;
    const RemoteProcess& process = *thread.process;
    if (!process.debugged) {  // its debugger has just gone
        passed_calls_.let_pass(thread.host_tid);
        return true;
    }
    worker_.signals.tell_of_signal(process.pid, thread.tid, {info, 0}, Signals::News::fatal);
    if (process.goes_home) {
        take_call_back(thread);
        spawn(worker_.crossings.come_home(thread));
    } else {
        thread.dying = true;
    }
    return true;
}

void Debugged::take_call_back(const RemoteThread& thread) {
    auto info = trace::signal_info(thread.host_tid);
    auto regs = trace::registers(thread.host_tid);
    const auto number = info ? stopped_call(*info) : std::nullopt;
    if (!number || !regs) return;
    stand_before_call(*regs, *number);
    trace::set_registers(thread.host_tid, *regs);
}

bool Debugged::let_call(const RemoteThread& thread, const siginfo_t& info) {
    if (!stopped_call(info)) return false;
    passed_calls_.let_pass(thread.host_tid);
    return true;
}

}  // namespace gpr::worker
