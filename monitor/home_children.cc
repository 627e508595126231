// Children of a fork: at home as ordinary processes at first, split when it is time.
// docs/decisions/0008-young-children-stay-home.md

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "monitor/fault_origin.h"
#include "monitor/home_session.h"

namespace gpr {

namespace {
constexpr std::chrono::milliseconds fork_patience{20};
}  // namespace

// A child that is not split yet is about to do what only a split one can: to share memory, which
// others have at the acceptor, or to have threads, which cannot be moved all at once.
bool HomeSession::must_split_for(const HomeProcess& process, const Notification& n) const {
    bool can = process.state == HomeProcess::State::native && !process.is_root &&
               !process.shares_memory_with && !process.doomed && link_open_ &&
               process.threads.size() == 1;
    if (!can) return false;
    switch (n.number) {
        case SYS_mmap: return (n.args[3] & MAP_TYPE) != MAP_PRIVATE;
        case SYS_shmat: return true;
        case SYS_clone: return n.args[0] & CLONE_THREAD;
        case SYS_clone3: {
            uint64_t flags = 0;
            auto memory = RemoteMemory::open(process.pid);
            return memory && memory->read_exact({n.args[0]}, &flags, sizeof flags) &&
                   (flags & CLONE_THREAD);
        }
        default: return false;
    }
}

void HomeSession::split_children_now() {
    for (const auto& [pid, process] : processes_) {
        if (process->is_root) continue;
        loop_.after(std::chrono::milliseconds(0), [this, pid = pid] { spawn(split_child(pid)); });
    }
}

// A fork is a snapshot: no thread at the acceptor may take pages away while the kernel copies.
Task<void> HomeSession::freeze(HomeProcess& process, HomeThread& thread) {
    if (!process.started_remotely || thread.forking) co_return;
    thread.forking = true;
    if (process.forks++ == 0) {
        FrameBuilder frame;
        auto freeze = frame.session().initFreeze();
        freeze.setPid(process.pid);
        freeze.setOn(true);
        link_.send(frame, Priority::urgent);
    }
    pid_t pid = process.pid, tid = thread.tid;
    for (;;) {
        HomeThread* still = find_thread(pid, tid);
        if (!still || !link_open_ || still->process->frozen) break;
        co_await remote_changed_.wait();
    }
    loop_.after(fork_patience, [this, tid] { thaw_after_failure(tid); });
}

void HomeSession::thaw(HomeThread& thread) {
    if (!std::exchange(thread.forking, false)) return;
    HomeProcess& process = *thread.process;
    if (--process.forks > 0) return;
    process.frozen = false;
    if (!process.started_remotely || !link_open_) return;
    FrameBuilder frame;
    frame.session().initFreeze().setPid(process.pid);
    link_.send(frame, Priority::urgent);
}

// A fork that succeeds has an event. One that fails has none: the thread is somewhere else then.
void HomeSession::thaw_after_failure(pid_t tid) {
    auto it = threads_.find(tid);
    if (it == threads_.end() || !it->second->forking) return;
    long call = fault_origin(tid).call;
    if (call == SYS_fork || call == SYS_clone || call == SYS_clone3) {
        loop_.after(fork_patience, [this, tid] { thaw_after_failure(tid); });
    } else {
        thaw(*it->second);
    }
}

// The child of a fork, in its first stop or about to be. context: what it is to begin with, if not
// as it is.
Task<void> HomeSession::start_newborn(HomeThread& thread, std::optional<ThreadContext> context,
                                      bool split) {
    WaitStatus status = co_await next_stop(thread);
    if (status.ended()) co_return;
    if (context) apply_context(thread.tid, *context);
    if (!split) {
        trace::resume(thread.tid);
        co_return;
    }
    if (!context) {
        auto now = capture_context(thread.tid);
        if (!now) co_return;
        now->regs.orig_rax = ~0UL;
        context = std::move(*now);
    }
    co_await split_stopped(*thread.process, thread, *context);
}

Task<void> HomeSession::split_child(pid_t pid) {
    HomeProcess* process = find_process(pid);
    if (!process || process->state != HomeProcess::State::native) co_return;
    if (process->shares_memory_with || process->threads.size() != 1) co_return;
    HomeThread* thread = process->threads.begin()->second;
    if (thread->awaited) co_return;
    if (process->stopped) {  // by job control: our interrupt would be one stop more
        loop_.after(std::chrono::milliseconds(30), [this, pid] { spawn(split_child(pid)); });
        co_return;
    }
    trace::interrupt(thread->tid);
    WaitStatus status = co_await next_stop(*thread);
    if (status.ended()) co_return;
    if (status.kind != WaitStatus::Kind::trap_stop) {
        // Something else came first; the interrupt is still to come and is absorbed.
        on_wait(pid, status);
        loop_.after(std::chrono::milliseconds(5), [this, pid] { spawn(split_child(pid)); });
        co_return;
    }
    auto context = capture_context(thread->tid);
    if (!context) co_return;
    trace::rewind_interrupted_call(context->regs);
    co_await split_stopped(*process, *thread, *context);
}

// Its thread is in a ptrace stop, with these registers.
Task<void> HomeSession::split_stopped(HomeProcess& process, HomeThread& thread,
                                      const ThreadContext& context) {
    process.state = HomeProcess::State::preparing;
    process.caught_signals = trace::signal_set(process.pid, "SigCgt:");
    auto prepared = co_await prepare(process, thread);
    if (!prepared) {
        if (!process.doomed) {
            abandon(fmt::format("cannot split process {}: {}", process.pid,
                                prepared.error().message()));
        }
        co_return;
    }
    co_await begin(process, thread, context);
}

}  // namespace gpr
