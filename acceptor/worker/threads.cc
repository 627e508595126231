#include "acceptor/worker/threads.h"

#include <fmt/format.h>
#include <linux/sched.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "acceptor/worker/forks.h"
#include "acceptor/worker/worker.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::worker {

namespace {
// Its id in the innermost pid namespace; 0 if it is gone.
pid_t own_id(pid_t host_tid) {
    std::ifstream in(fmt::format("/proc/{}/status", host_tid));
    for (std::string line; std::getline(in, line);) {
        if (!line.starts_with("NSpid:")) continue;
        return static_cast<pid_t>(
            std::strtol(line.c_str() + line.find_last_of("\t "), nullptr, 10));
    }
    return 0;
}
}  // namespace

void Threads::watch(RemoteThread& thread) { worker_.by_host_tid[thread.host_tid] = &thread; }

void Threads::on_birth(pid_t parent) {
    auto message = trace::event_message(parent);
    auto owner = worker_.owners.find(parent);
    if (message && owner != worker_.owners.end()) {
        auto child = static_cast<pid_t>(*message);
        if (owner->second->newborn) {
            worker_.forks.on_newborn(*owner->second, child);
            trace::resume(parent);
            return;
        }
        worker_.owners[child] = owner->second;
        owner->second->host_tids[own_id(child)] = child;
        owner->second->alive++;
        worker_.waits.set_handler(child,
                                  [this, child](WaitStatus s) { worker_.on_wait(child, s); });
    }
    trace::resume(parent);
}

Task<Result<RemoteThread*>> Threads::make_shadow(RemoteProcess& process, pid_t tid, uint64_t flags,
                                                 uint64_t child_tid) {
    Fragment& fragment = *process.fragment;
    auto slot = fragment.mailbox().allocate();
    if (!slot) co_return tl::make_unexpected(slot.error());
    auto thread = std::make_unique<RemoteThread>();
    thread->tid = tid;
    thread->process = &process;
    thread->stub = std::make_unique<StubThread>(worker_.loop, fragment.mailbox(), *slot);
    if (flags & CLONE_CHILD_CLEARTID) thread->clear_tid = child_tid;
    constexpr uint64_t basic =
        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    Fragment::Birth birth{basic | (flags & CLONE_CHILD_CLEARTID), tid, child_tid};
    auto born = co_await fragment.give_birth(fragment.executor(), *thread->stub, birth);
    if (!born) co_return tl::make_unexpected(born.error());
    // Its birth was noted before the executor reported it. If the thread is gone, so is the
    // process.
    auto seen = process.host_tids.find(*born);
    if (seen == process.host_tids.end()) {
        fragment.remove_stub_thread(*thread->stub);
        co_return fail(ESRCH, "a new thread was killed at once");
    }
    thread->host_tid = seen->second;
    RemoteThread* raw = thread.get();
    watch(*raw);
    process.threads[tid] = std::move(thread);
    co_return raw;
}

// If the process has just been ended, a thread that cannot begin does not matter.
void Threads::could_not_begin(const Error& why) {
    if (why.code != ESRCH) worker_.link.close(why.message());
}

Task<WaitStatus> Threads::next_stop(RemoteThread& thread, bool soon) {
    OneShot<WaitStatus> stop(worker_.loop);
    thread.awaited = &stop;
    if (soon) worker_.waits.look_for_stop(thread.host_tid);
    WaitStatus status = co_await stop;
    co_return status;
}

Task<Result<ThreadContext>> Threads::stop_in_call(RemoteThread& thread, uint64_t notification) {
    // Ask for the stop before answering, so that the thread cannot run on in between.
    trace::interrupt(thread.host_tid);
    bool answered = thread.process->notifier->reply_error(notification, trace::restart_nointr);
    if (!answered) co_return fail(ESRCH, "the caller is gone");
    WaitStatus status = co_await next_stop(thread);
    if (status.kind == WaitStatus::Kind::signal_stop ||
        status.kind == WaitStatus::Kind::group_stop) {
        // The signal comes first; the call is restarted after its handler.
        worker_.on_wait(thread.host_tid, status);
        co_return fail(EINTR, "a signal came first");
    }
    if (status.kind != WaitStatus::Kind::trap_stop) co_return fail(ESRCH, "the caller is gone");
    co_return capture_context(thread.host_tid);
}

// Lets the thread leave its stub. If the process is frozen, threads in their stubs were not
// stopped, so this one has to be stopped on its way out.
Task<void> Threads::set_free(RemoteThread& thread, const ThreadContext& context) {
    pid_t pid = thread.process->pid, tid = thread.tid;
    thread.now_is(RemoteThread::Where::leaving_stub);
    co_await thread.stub->resume(context);
    RemoteThread* still = worker_.find_thread(pid, tid);
    if (!still) co_return;
    if (still->where() == RemoteThread::Where::leaving_stub) {
        still->now_is(RemoteThread::Where::running);
    }
    if (still->process->stops()) trace::interrupt(still->host_tid);
}

// Resumes the thread, and asks for another stop if one is wanted: several requests make one stop.
void Threads::go_on(RemoteThread& thread) {
    trace::resume(thread.host_tid);
    if (thread.process->stops()) trace::interrupt(thread.host_tid);
}

}  // namespace gpr::worker
