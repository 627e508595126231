#include "monitor/home/resting_usage.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include "monitor/home/debugging.h"
#include "monitor/home/home.h"
#include "monitor/home/remote_usage.h"
#include "monitor/home/tracing.h"
#include "monitor/node/usage.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::home {

namespace {

// Of a call that waits for a child: where it writes what the child has used; 0: it does not.
uint64_t usage_of_waited(const Notification& n) {
    if (n.number == SYS_wait4) return n.args[3];
    return n.number == SYS_waitid ? n.args[4] : 0;
}

// The child that was waited for; 0: none, or it is not told which.
pid_t waited_child(const RemoteMemory& memory, const Notification& n, long result) {
    if (n.number == SYS_wait4) return static_cast<pid_t>(result);
    siginfo_t info{};
    const bool told = n.args[2] != 0 && memory.read_exact({n.args[2]}, &info, sizeof info);
    if (told) return info.si_pid;
    return n.args[0] == P_PID ? static_cast<pid_t>(n.args[1]) : 0;
}

}  // namespace

bool RestingUsage::adds_to(const HomeThread& thread, const Notification& n) const {
    HomeProcess& process = *thread.process;
    if (!process.rest || process.debugged) return false;
    if (home_.debugging.tracing().concerns(process.pid)) return false;
    if (usage_of_waited(n) != 0) return true;
    const auto tells = usage_call(n.number, n.args);
    if (!tells) return false;
    return RemoteUsage::used_before(thread, *tells).total_ns != 0 ||
           RemoteUsage::used_by_children(process).total_ns != 0;
}

bool RestingUsage::takes_reported(HomeThread& thread, const Notification& n) {
    if (const auto its = pending_.find(n.tid); its != pending_.end()) {
        if (its->second.stage == Stage::makes_call) {
            home_.notifier->let_it_run(n.id);
            return true;
        }
        pending_.erase(its);
    }
    if (!adds_to(thread, n)) return false;
    pending_[n.tid] = {n, Stage::reported};
    trace::interrupt(n.tid);
    return true;
}

bool RestingUsage::takes_stopped(HomeThread& thread, const Notification& n) {
    pending_.erase(n.tid);
    if (!adds_to(thread, n)) return false;
    pending_[n.tid] = {n, Stage::makes_call};
    trace::resume_to_call(n.tid);
    return true;
}

bool RestingUsage::takes_stop(HomeThread& thread, WaitStatus status) {
    const auto its = pending_.find(thread.tid);
    if (its == pending_.end()) return false;
    if (goes_on(thread, its->second, status)) return true;
    // A signal, or somebody else's interrupt: the thread makes its call again.
    const bool made =
        its->second.stage == Stage::makes_call && status.kind == WaitStatus::Kind::syscall_stop;
    if (made) add(thread, its->second.call);
    pending_.erase(its);
    if (made) trace::resume(thread.tid);
    return made;
}

// To the next stage. False if the stop is not the one that was to come.
bool RestingUsage::goes_on(HomeThread& thread, Pending& pending, WaitStatus status) {
    if (pending.stage == Stage::begins && status.kind == WaitStatus::Kind::syscall_stop) {
        pending.stage = Stage::makes_call;
        trace::resume_to_call(thread.tid);
        return true;
    }
    if (pending.stage != Stage::reported || status.kind != WaitStatus::Kind::trap_stop)
        return false;
    auto regs = trace::registers(thread.tid);
    const bool in_call = regs && regs->orig_rax == pending.call.number &&
                         trace::is_restart(static_cast<long>(regs->rax));
    if (!in_call) return false;
    trace::rewind_interrupted_call(*regs);
    trace::set_registers(thread.tid, *regs);
    pending.stage = Stage::begins;
    trace::resume_to_call(thread.tid);
    return true;
}

// The thread is stopped behind the call.
void RestingUsage::add(HomeThread& thread, const Notification& n) {
    HomeProcess& process = *thread.process;
    const auto regs = trace::registers(thread.tid);
    const auto memory = RemoteMemory::open(process.pid);
    if (!regs || !memory || static_cast<long>(regs->rax) < 0) return;
    if (const uint64_t at = usage_of_waited(n)) {
        std::array<std::byte, sizeof(rusage)> told{};
        const pid_t child = waited_child(*memory, n, static_cast<long>(regs->rax));
        if (child == 0 || !memory->read_exact({at}, told.data(), told.size())) return;
        const bool may_wait_again = n.number == SYS_waitid && n.args[3] & WNOWAIT;
        RemoteUsage::add_waited(process, child, told, may_wait_again);
        memory->write({at}, told.data(), told.size());
        return;
    }
    const auto tells = usage_call(n.number, n.args);
    if (!tells) return;
    std::vector<std::byte> told(tells->size);
    const Address at{n.args[tells->argument]};
    if (!memory->read_exact(at, told.data(), told.size())) return;
    add_usage(n.number, *tells, told, RemoteUsage::used_before(thread, *tells),
              RemoteUsage::used_by_children(process));
    memory->write(at, told.data(), told.size());
}

void RestingUsage::forget(const HomeProcess& process) {
    for (const auto& [tid, thread] : process.threads) pending_.erase(tid);
}

}  // namespace gpr::home
