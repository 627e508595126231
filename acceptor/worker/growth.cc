#include "acceptor/worker/growth.h"

#include <sys/syscall.h>

#include <csignal>

#include "acceptor/worker/mapping_changes.h"
#include "acceptor/worker/signals.h"
#include "acceptor/worker/worker.h"
#include "monitor/paging/growth.h"
#include "monitor/tracee/kernel_actions.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/signal_action.h"

namespace gpr::worker {

bool Growth::mends_fault(RemoteProcess& process, RemoteThread& thread, const siginfo_t& info) {
    if (!process.fragment) return false;
    if (worker_.pager.absent.absent_page(*process.fragment, info)) {
        spawn(bus_error(process.pid, thread.tid, info));
        return true;
    }
    if (!growth_for(process.fragment->space, info)) return false;
    spawn(grow_down(process, thread, info));
    return true;
}

// The thread is stopped by the signal. It will not see the signal, and touches the page again.
Task<void> Growth::grow_down(RemoteProcess& process, RemoteThread& thread, siginfo_t info) {
    auto guard = co_await worker_.metadata.lock();
    std::shared_ptr<Fragment> fragment = process.fragment;
    pid_t host_tid = thread.host_tid;
    const bool grown = co_await worker_.mapping_changes.changes.grow_down(fragment, info);
    if (!grown) {
        trace::resume(host_tid, SIGSEGV);
        co_return;
    }
    co_await repair_signal(process.pid, thread.tid, SIGSEGV);
    trace::resume(host_tid);
}

void Growth::note_action(RemoteProcess& process, const SignalAction& action) {
    if (is_fault_signal(action.signal)) process.fault_actions[action.signal] = action;
}

void Growth::note_handled(RemoteProcess& process, int signal) {
    auto known = process.fault_actions.find(signal);
    if (known == process.fault_actions.end()) return;
    if (known->second.kernel[1] & SA_RESETHAND) known->second.kernel[0] = 0;
}

// The thread is stopped by the signal, which it will not see.
Task<void> Growth::repair_signal(pid_t pid, pid_t tid, int signal) {
    RemoteThread* thread = worker_.find_thread(pid, tid);
    if (!thread) co_return;
    const RemoteProcess& process = *thread->process;
    const uint64_t bit = 1ULL << (signal - 1);
    FaultAction before{{signal, {}}, thread->mask && (*thread->mask & bit)};
    auto known = process.fault_actions.find(signal);
    if (known != process.fault_actions.end()) before.action = known->second;
    auto repair = repair_after_fault(before, trace::signal_set(process.host_pid, "SigCgt:"));
    if (repair.block) {
        trace::set_signal_mask(thread->host_tid,
                               trace::signal_set(thread->host_tid, "SigBlk:") | bit);
    }
    if (!repair.action) co_return;
    std::shared_ptr<Fragment> fragment = process.fragment;
    StubThread& executor = fragment->executor();
    auto guard = co_await executor.lock();
    co_await set_kernel_action(executor, before.action);
}

// The thread is stopped by the signal.
Task<void> Growth::bus_error(pid_t pid, pid_t tid, siginfo_t info) {
    RemoteProcess* process = worker_.find_process(pid);
    if (!process || !process->fragment) co_return;
    std::shared_ptr<Fragment> fragment = process->fragment;
    bool beyond =
        co_await worker_.pager.absent.is_beyond_end(fragment, info, static_cast<Tid>(tid));
    process = worker_.find_process(pid);
    RemoteThread* thread = worker_.find_thread(pid, tid);
    if (!process || !thread) co_return;
    if (!beyond) {
        const pid_t host_tid = thread->host_tid;
        co_await repair_signal(pid, tid, SIGBUS);
        trace::resume(host_tid);
        co_return;
    }
    trace::set_signal_info(thread->host_tid, end_of_file_info(info));
    worker_.signals.on_signal_stop(*process, *thread, SIGBUS);
}

}  // namespace gpr::worker
