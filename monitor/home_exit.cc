// Threads of a mixed session end: what the kernel does in their name must reach every node.

#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

#include "monitor/home_session.h"

namespace gpr {

namespace {
// A page may never come when the acceptor's part of the process is going down as well.
constexpr std::chrono::milliseconds page_patience{500};
}  // namespace

// The parent is still inside its clone.
void HomeSession::note_clear_tid(HomeThread& parent, HomeThread& child) {
    auto regs = trace::registers(parent.tid);
    if (!regs || parent.remote) return;  // born as a shadow: the acceptor's kernel does it
    uint64_t flags = regs->rdi, address = regs->r10;
    if (regs->orig_rax == SYS_clone3) {
        clone_args args{};
        // A native child has no fragment yet; its threads end after it has got one.
        auto memory = RemoteMemory::open(parent.process->pid);
        if (!memory || !memory->read_exact({regs->rdi}, &args, CLONE_ARGS_SIZE_VER0)) return;
        flags = args.flags;
        address = args.child_tid;
    }
    if (flags & CLONE_CHILD_CLEARTID) child.clear_tid = address;
}

// The kernel clears the tid and walks the robust list when the thread is past faulting: what is
// missing then is skipped in silence (KERNEL-FACTS "Broken, with no uffd message").
Task<void> HomeSession::before_exit(HomeThread& thread) {
    HomeProcess& process = *thread.process;
    auto regs = trace::registers(thread.tid);
    bool alone = regs && regs->orig_rax == SYS_exit;  // not one of many that end together
    if (!alone || process.state != HomeProcess::State::split || !process.started_remotely) {
        co_return;
    }
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto done = std::make_shared<OneShot<bool>>(loop_);
    uint64_t head = 0;
    size_t length = 0;
    syscall(SYS_get_robust_list, thread.tid, &head, &length);
    spawn([](HomeSession& self, std::shared_ptr<Fragment> f, std::shared_ptr<OneShot<bool>> end,
             uint64_t clear, uint64_t robust) -> Task<void> {
        for (Range words : {Range{{clear}, {clear + 4}}, Range{{robust}, {robust + 24}}}) {
            if (words.begin.value == 0) continue;
            co_await self.pager_.make_resident(*f, words, Access::write);
        }
        end->set(true);
    }(*this, fragment, done, thread.clear_tid, head));
    auto timer = loop_.after(page_patience, [done] { done->set(false); });
    OneShot<bool>& resident = *done;
    co_await resident;
    loop_.cancel(timer);
}

void HomeSession::tell_exit(HomeThread& thread) {
    HomeProcess& process = *thread.process;
    if (process.state != HomeProcess::State::split || !process.started_remotely || !link_open_) {
        return;
    }
    FrameBuilder frame;
    auto end = frame.session().initShadowEnd();
    end.setPid(process.pid);
    end.setTid(thread.tid);
    link_.send(frame, Priority::urgent);
    // pthread_join waits for this word without FUTEX_PRIVATE_FLAG, because the kernel wakes so.
    if (thread.clear_tid != 0) {
        send_futex_wake(process, {thread.clear_tid, INT_MAX, 0xffffffff, true});
    }
}

}  // namespace gpr
