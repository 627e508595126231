// Pages that a device of the acceptor has pinned do not come home. Program code that touches one
// goes there.

#include "base/log.h"
#include "monitor/fault_origin.h"
#include "monitor/home_session.h"

namespace gpr {

namespace {
// See home_code.cc.
constexpr std::chrono::microseconds falls_asleep_in{20};
constexpr int most_looks = 50;
// Pins of direct I/O end with it; those of registered buffers do not end.
constexpr std::chrono::seconds direct_io_ends_in{5};
}  // namespace

Task<void> HomeSession::pinned_fault(std::shared_ptr<Fragment> fragment, Address at, pid_t tid) {
    for (int looks = 1;; looks++) {
        FaultOrigin origin = fault_origin(tid);
        if (origin.kind == FaultOrigin::Kind::gone) co_return;
        auto it = threads_.find(tid);
        HomeThread* thread = it == threads_.end() ? nullptr : it->second.get();
        bool movable = thread && !thread->helper && !thread->remote && policy_.mixed() &&
                       thread->process->fragment == fragment;
        if (movable && origin.kind == FaultOrigin::Kind::unknown && looks < most_looks) {
            OneShot<bool> later(loop_);
            loop_.after(falls_asleep_in, [&later] { later.set(true); });
            co_await later;
            continue;
        }
        if (movable && origin.kind == FaultOrigin::Kind::program && !thread->awaited) {
            spdlog::trace("tid {} goes to {:#x}, which is pinned there", tid, at.value);
            thread->pin_wait.reset();
            co_await leave(fragment, *thread, at, false, Why::pinned);
        } else {
            wait_for_pin(*fragment, at, thread, tid);
        }
        co_return;
    }
}

// The kernel here, in a system call or in the name of the acceptor, cannot be sent there.
void HomeSession::wait_for_pin(Fragment& fragment, Address at, HomeThread* thread, pid_t tid) {
    const auto now = Clock::now();
    if (thread && (!thread->pin_wait || thread->pin_wait->page != at)) {
        thread->pin_wait = HomeThread::PinWait{at, now + direct_io_ends_in};
    }
    HomeProcess* process = find_process(fragment.pid());
    if (process && thread && thread->pin_wait->until < now) {
        give_up(*process, fmt::format("a system call at home uses memory that a device of the "
                                      "acceptor has pinned, at {:#x}; run the code that makes it "
                                      "at the acceptor (--split all)",
                                      at.value));
        return;
    }
    pager_.serve_later(fragment, at, static_cast<Tid>(tid));
}

}  // namespace gpr
