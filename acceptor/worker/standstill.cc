#include "acceptor/worker/standstill.h"

#include <sys/ptrace.h>

#include <algorithm>
#include <csignal>

#include "acceptor/worker/crossings.h"
#include "acceptor/worker/worker.h"
#include "base/log.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::worker {

namespace {
// Whether the thread is in a group-stop; the stop that we asked for shows it.
bool is_in_group_stop(pid_t host_tid) {
    auto info = trace::signal_info(host_tid);
    return info && info->si_code >> 8 == PTRACE_EVENT_STOP && info->si_signo != SIGTRAP;
}
}  // namespace

Task<void> Standstill::freeze(RemoteProcess& process, RemoteThread* but) {
    spdlog::trace("freeze: process {}{}", process.pid, but ? ", for its own thread" : "");
    process.frozen = true;
    process.stopped.clear();
    for (auto& [tid, thread] : process.threads) {
        // A thread in its stub counts as stopped, and may be about to end, which cannot be delayed.
        bool runs = thread.get() != but && thread->where() != RemoteThread::Where::held &&
                    !thread->stub->in_stub();
        if (runs) trace::interrupt(thread->host_tid);
    }
    auto stands = [&](const RemoteThread& t) {
        return &t == but || t.where() == RemoteThread::Where::held || t.answer ||
               (t.stub->in_stub() && t.where() != RemoteThread::Where::leaving_stub) ||
               std::find(process.stopped.begin(), process.stopped.end(), t.host_tid) !=
                   process.stopped.end();
    };
    for (;;) {
        bool all = true;
        for (auto& [tid, thread] : process.threads) all = all && stands(*thread);
        if (all || !process.frozen) co_return;
        co_await worker_.stopped.wait();
    }
}

// A thread at home forks. Threads that arrive meanwhile wait in their stubs.
Task<void> Standstill::freeze_for_home(Frame frame) {
    auto wanted = frame->session().getFreeze();
    pid_t pid = wanted.getPid();
    RemoteProcess* process = worker_.find_process(pid);
    if (!process) co_return;
    if (!wanted.getOn()) {
        process->home_freeze = 0;
        if (process->home_forks) thaw(*process);
        process->home_forks.reset();
        worker_.stopped.notify_all();
        co_return;
    }
    // A thread here may be forking at this moment, and home may change its mind before that is
    // over.
    uint32_t number = process->home_freeze = wanted.getNumber();
    auto is_over = [&] {
        process = worker_.find_process(pid);
        return !process || process->home_freeze != number;
    };
    if (!process->forking) process->forking = std::make_unique<AsyncMutex>(worker_.loop);
    auto guard = std::make_unique<AsyncMutex::Guard>(co_await process->forking->lock());
    if (is_over()) co_return;
    process->home_forks = std::move(guard);
    co_await freeze(*process, nullptr);
    if (is_over()) co_return;
    FrameBuilder answer;
    auto frozen = answer.session().initFreeze();
    frozen.setPid(pid);
    frozen.setOn(true);
    frozen.setNumber(number);
    worker_.link.send(answer, gpr::Priority::urgent);
}

void Standstill::thaw(RemoteProcess& process) {
    spdlog::trace("thaw: process {}", process.pid);
    process.frozen = false;
    worker_.stopped.notify_all();
    for (pid_t host_tid : std::exchange(process.stopped, {})) {
        if (is_in_group_stop(host_tid)) {
            trace::stay_stopped(host_tid);
        } else if (process.halted) {
            process.halted_tids.push_back(host_tid);
        } else {
            trace::resume(host_tid);
            if (process.goes_home) trace::interrupt(host_tid);
        }
    }
}

// Threads that wait for an answer from home stop when they have it.
void Standstill::send_home(const Frame& frame) {
    auto wanted = frame->session().getHomecoming();
    RemoteProcess* process = worker_.find_process(wanted.getPid());
    if (!process) return;
    process->goes_home = wanted.getOn();
    process->debugged = wanted.getDebugged();
    if (!process->goes_home) return;
    for (auto& [tid, thread] : process->threads) {
        if (std::exchange(thread->dying, false)) {  // for its core file, or its debugger
            Debugged::take_call_back(*thread);
            spawn(worker_.crossings.come_home(*thread, true));
            continue;
        }
        const bool runs = thread->where() != RemoteThread::Where::held && !thread->stub->in_stub();
        if (runs) trace::interrupt(thread->host_tid);
    }
    for (pid_t host_tid : std::exchange(process->halted_tids, {})) {
        auto it = worker_.by_host_tid.find(host_tid);
        if (it != worker_.by_host_tid.end()) spawn(worker_.crossings.come_home(*it->second));
    }
}

// Not by SIGSTOP, which would also stop the executor, a thread of the process; home may want pages
// of a stopped program.
void Standstill::halt(RemoteProcess& process) {
    process.halted = true;
    for (auto& [tid, thread] : process.threads) {
        if (thread->where() != RemoteThread::Where::held && !thread->stub->in_stub())
            trace::interrupt(thread->host_tid);
    }
}

void Standstill::let_go_on(RemoteProcess& process) {
    process.halted = false;
    for (pid_t host_tid : std::exchange(process.halted_tids, {})) trace::resume(host_tid);
}

}  // namespace gpr::worker
