#include "monitor/home/forks_at_home.h"

#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "monitor/home/crossings.h"
#include "monitor/home/home.h"
#include "monitor/tracee/fault_origin.h"

namespace gpr::home {

namespace {
constexpr std::chrono::milliseconds fork_patience{20};

}  // namespace

// A fork is a snapshot: while the kernel copies the memory here, all of it must be here and no
// thread at the acceptor may change it. True when the kernel may go ahead.
Task<bool> ForksAtHome::begin_fork(std::shared_ptr<Fragment> fragment, pid_t tid) {
    for (;;) {
        HomeThread* thread = home_.find_thread(fragment->pid(), tid);
        if (!thread) co_return false;
        if (thread->fork.ready) co_return true;
        if (thread->fork.number != 0) {  // a signal interrupted the fork and the thread calls again
            co_await home_.remote_changed.wait();
            continue;
        }
        uint64_t number = thread->fork.number = ++forks_begun_;
        auto still = [&] {
            thread = home_.find_thread(fragment->pid(), tid);
            return thread && thread->fork.number == number;
        };
        co_await freeze(*thread->process, tid);
        if (!still()) continue;
        thread->fork.begun = true;
        co_await home_.pager.forks.begin_fork(fragment);
        if (!still()) continue;
        thread->fork.ready = true;
        home_.remote_changed.notify_all();
        home_.loop.after(fork_patience, [this, tid] { end_failed_fork(tid); });
    }
}

Task<void> ForksAtHome::freeze(HomeProcess& process, pid_t tid) {
    pid_t pid = process.pid;
    if (process.forks++ == 0 && process.started_remotely) {
        FrameBuilder frame;
        auto freeze = frame.session().initFreeze();
        freeze.setPid(pid);
        freeze.setOn(true);
        freeze.setNumber(++process.freezes);
        process.frozen_at.clear();
        home_.acceptors.send(frame);
    }
    for (;;) {
        HomeThread* still = home_.find_thread(pid, tid);
        if (!still || !home_.acceptors.reachable() || !still->process->started_remotely) break;
        if (still->process->frozen_at.size() == home_.acceptors.size()) break;
        co_await home_.remote_changed.wait();
    }
}

bool ForksAtHome::end_fork(HomeThread& thread) {
    ForkAtHome fork = std::exchange(thread.fork, {});
    if (fork.number == 0) return false;
    home_.remote_changed.notify_all();
    HomeProcess& process = *thread.process;
    if (fork.begun) spawn(home_.pager.forks.end_fork(process.fragment));
    if (--process.forks > 0) return true;
    process.frozen_at.clear();
    if (!process.started_remotely || !home_.acceptors.reachable()) return true;
    FrameBuilder frame;
    frame.session().initFreeze().setPid(process.pid);
    home_.acceptors.send(frame);
    return true;
}

// A successful fork has a ptrace event. A failed one has none, but then the thread has moved on.
void ForksAtHome::end_failed_fork(pid_t tid) {
    auto it = home_.threads.find(tid);
    if (it == home_.threads.end() || it->second->fork.number == 0) return;
    FaultOrigin origin = fault_origin(tid);
    bool in_fork =
        origin.kind == FaultOrigin::Kind::kernel &&
        (origin.call == SYS_fork || origin.call == SYS_clone || origin.call == SYS_clone3);
    if (in_fork || origin.kind == FaultOrigin::Kind::unknown) {
        home_.loop.after(fork_patience, [this, tid] { end_failed_fork(tid); });
    } else {
        end_fork(*it->second);
    }
}

// The kernel's copy has no userfaultfd: missing pages would read as zeros.
Task<void> ForksAtHome::fork_call(HomeProcess& process, HomeThread& thread, Notification n) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    uint64_t flags = n.args[0];
    thread.clears_childs_tid = n.args[3];
    if (n.number == SYS_clone3) {
        clone_args args{};
        Address at{n.args[0]};
        auto bytes = std::as_writable_bytes(std::span(&args, 1)).first(CLONE_ARGS_SIZE_VER0);
        bool readable = co_await home_.pager.memory.read(*fragment, at, bytes);
        flags = readable ? args.flags : CLONE_VM;  // the kernel will refuse the call
        thread.clears_childs_tid = args.child_tid;
    }
    // We would not see such a child. For a thread at the acceptor we make the call ourselves.
    if (flags & CLONE_UNTRACED) {
        co_await home_.crossings.leave_at_call(process, thread, thread.last_away, true);
        co_return;
    }
    if (!(flags & CLONE_CHILD_CLEARTID)) thread.clears_childs_tid = 0;
    if (n.number == SYS_fork || !(flags & CLONE_VM)) {
        if (!co_await begin_fork(fragment, thread.tid)) co_return;
    }
    home_.notifier->let_it_run(n.id);
}

}  // namespace gpr::home
