#include "monitor/home/pinned_pages.h"

#include "base/log.h"
#include "monitor/home/code_faults.h"
#include "monitor/home/failures.h"
#include "monitor/home/home.h"
#include "monitor/tracee/fault_origin.h"

namespace gpr::home {

namespace {
// Pins of direct I/O end with the I/O; those of registered buffers do not end.
constexpr std::chrono::seconds direct_io_ends_in{5};
// A thread that is refused the same page after a longer pause than this waits for another pin.
constexpr std::chrono::seconds one_wait{1};
}  // namespace

Task<void> PinnedPages::pinned_fault(std::shared_ptr<Fragment> fragment, Address at, pid_t tid,
                                     NodeId pinned_at) {
    FaultOrigin origin = co_await settled_origin(home_.loop, tid);
    if (origin.kind == FaultOrigin::Kind::gone) co_return;
    auto it = home_.threads.find(tid);
    HomeThread* thread = it == home_.threads.end() ? nullptr : it->second.get();
    bool movable = thread && !thread->helper && !thread->remote() && home_.policy.mixed() &&
                   thread->process->fragment == fragment;
    if (movable && origin.kind == FaultOrigin::Kind::program && !thread->awaited) {
        spdlog::trace("tid {} goes to {:#x}, which is pinned there", tid, at.value);
        thread->pin_wait.reset();
        co_await home_.code_faults.leave(fragment, *thread, at, false, CodeFaults::Why::pinned,
                                         pinned_at);
    } else {
        wait_for_pin(*fragment, at, thread, tid);
    }
}

// A system call here, or a call made for a thread of the acceptor, cannot be moved there, so it
// waits for the page.
void PinnedPages::wait_for_pin(Fragment& fragment, Address at, HomeThread* thread, pid_t tid) {
    const auto now = Clock::now();
    if (thread) {
        auto& wait = thread->pin_wait;
        bool again = wait && wait->page == at && now - wait->last < one_wait;
        if (!again) wait = HomeThread::PinWait{at, now + direct_io_ends_in, now};
        wait->last = now;
    }
    HomeProcess* process = home_.find_process(fragment.pid());
    if (process && thread && thread->pin_wait->until < now) {
        home_.failures.give_up(
            *process, fmt::format("a system call at home uses memory that a device of the "
                                  "acceptor has pinned, at {:#x}; run the code that makes it "
                                  "at the acceptor (--split all)",
                                  at.value));
        return;
    }
    home_.pager.pinned.serve_later(fragment, at, static_cast<Tid>(tid));
}

}  // namespace gpr::home
