#include "monitor/home/last_words.h"

#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

#include "monitor/home/futexes.h"
#include "monitor/home/home.h"
#include "monitor/home/shared_memory.h"
#include "monitor/node/exit_hold.h"
#include "monitor/node/robust_list.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::home {

namespace {
// A page may never arrive if the acceptor's part of the process is ending, too.
constexpr std::chrono::milliseconds page_patience{500};
}  // namespace

// The parent is still in its clone, whose arguments were read when it began; by now their page may
// have left.
void LastWords::note_clear_tid(HomeThread& parent, HomeThread& child) {
    if (parent.remote()) return;  // born as a shadow: the acceptor's kernel clears it
    child.clear_tid = std::exchange(parent.clears_childs_tid, 0);
    if (parent.process->fragment) return;
    auto regs = trace::registers(parent.tid);  // in an unsplit child, whose memory is all here
    if (!regs) return;
    uint64_t flags = regs->rdi, address = regs->r10;
    if (regs->orig_rax == SYS_clone3) {
        clone_args args{};
        auto memory = RemoteMemory::open(parent.process->pid);
        if (!memory || !memory->read_exact({regs->rdi}, &args, CLONE_ARGS_SIZE_VER0)) return;
        flags = args.flags;
        address = args.child_tid;
    }
    if (flags & CLONE_CHILD_CLEARTID) child.clear_tid = address;
}

// At a thread's end the kernel clears its tid and walks its robust list. It can no longer fault
// then, and silently skips missing pages.
Task<void> LastWords::before_exit(HomeThread& thread, bool filtered) {
    HomeProcess& process = *thread.process;
    auto regs = trace::registers(thread.tid);
    // Whether the thread ends without the rest of its process.
    bool alone = filtered || (regs && regs->orig_rax == SYS_exit);
    bool split = process.state == HomeProcess::State::split && process.started_remotely;
    // Locks in memory that other processes share are at home, and so are their waiters.
    if (!split || !(alone || home_.shared_memory.anyone_writes_shared())) co_return;
    process.ends_begun++;
    co_await hold_last_words(thread, alone);
    if (--process.ends_begun == 0) home_.remote_changed.notify_all();
}

// alone: other threads of the process continue and see the thread's tid cleared.
Task<void> LastWords::hold_last_words(HomeThread& thread, bool alone) {
    HomeProcess& process = *thread.process;
    bool clears = alone && thread.clear_tid != 0;
    uint64_t list = robust_list_of(thread.tid);
    if (!clears && list == 0) {
        if (alone && thread.tid == process.pid) tell_exit(thread);
        co_return;
    }
    std::vector<Range> words;
    if (clears) words.push_back({{thread.clear_tid}, {thread.clear_tid + 4}});
    struct Last {
        explicit Last(Scheduler& scheduler) : done(scheduler) {}
        OneShot<bool> done;
        std::vector<uint64_t> locks;
        uint64_t hold = 0;
        bool too_late = false;
    };
    auto last = std::make_shared<Last>(home_.loop);
    spawn([](Pager& pager, std::shared_ptr<Fragment> fragment, std::shared_ptr<Last> shared,
             std::vector<Range> ranges, uint64_t robust_at) -> Task<void> {
        auto robust = co_await robust_words(pager, fragment, robust_at);
        ranges.insert(ranges.end(), robust.all.begin(), robust.all.end());
        shared->locks = std::move(robust.locks);
        shared->hold = co_await pager.supply.hold(*fragment, std::move(ranges), Access::write);
        if (shared->too_late) pager.supply.release(shared->hold);
        shared->done.set(true);
    }(home_.pager, process.fragment, last, std::move(words), list));
    auto timer = home_.loop.after(page_patience, [last] { last->done.set(false); });
    OneShot<bool>& done = last->done;
    last->too_late = !co_await done;
    home_.loop.cancel(timer);
    if (last->too_late) co_return;
    thread.exit_hold = last->hold;
    thread.robust_locks = std::move(last->locks);
    // Sent before the end: a woken thread reads the word again, and waits for the page until we
    // release it.
    if (alone && thread.tid == process.pid) tell_exit(thread);
    release_after_end(home_.loop, home_.pager, process.pid, thread.tid, last->hold);
}

void LastWords::tell_exit(HomeThread& thread) {
    if (thread.life() == HomeThread::Life::end_told) return;
    thread.advance(HomeThread::Life::end_told);
    HomeProcess& process = *thread.process;
    if (process.state != HomeProcess::State::split || !process.started_remotely ||
        !home_.acceptors.reachable()) {
        return;
    }
    FrameBuilder frame;
    auto end = frame.session().initShadowEnd();
    end.setPid(process.pid);
    end.setTid(thread.tid);
    home_.acceptors.send(frame);
    // The wake is a shared one: the kernel makes it without FUTEX_PRIVATE_FLAG, so pthread_join
    // waits without it, too.
    if (thread.clear_tid != 0) {
        home_.futexes.send_futex_wake(process, {thread.clear_tid, INT_MAX, 0xffffffff, true});
    }
    for (uint64_t lock : thread.robust_locks) {
        home_.futexes.send_futex_wake(process, handing_on(lock));
    }
}

}  // namespace gpr::home
