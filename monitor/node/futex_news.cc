#include "monitor/node/futex_news.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>

#include <algorithm>

namespace gpr {

void FutexNews::use(std::unique_ptr<CallWatch> watch, Waked waked) {
    watch_ = std::move(watch);
    waked_ = std::move(waked);
    if (elsewhere_) watch_->set_elsewhere(*elsewhere_);
    link_.before_frame([this] { tell_waiters(); });
    wakes_ = loop_.watch(watch_->fd(), POLLIN, [this](uint32_t) {
        watch_->fetch([this](const WatchedWake& wake) {
            waked_(wake.pid, wake.tid, {wake.address, wake.count, wake.bitset, false});
        });
    });
}

Result<> FutexNews::join(pid_t pid, pid_t name, Openers openers) {
    if (!watch_) return {};
    return watch_->join(pid, name, openers);
}

bool FutexNews::tells(uint32_t number, const uint64_t (&args)[6]) {
    if (!watch_ || number != SYS_futex) return false;
    auto operation = static_cast<uint32_t>(args[1]);
    switch (operation & static_cast<uint32_t>(FUTEX_CMD_MASK)) {
        case FUTEX_WAKE:
        case FUTEX_WAKE_BITSET: return operation & FUTEX_PRIVATE_FLAG;
        case FUTEX_REQUEUE:
        case FUTEX_CMP_REQUEUE:
        case FUTEX_CMP_REQUEUE_PI: watch_->count_for_ever(args[4]); return false;
        default: return false;
    }
}

void FutexNews::tell_waiters() {
    WaiterSummary waiting = watch_->waiting();
    if (told_ == waiting) return;
    told_ = waiting;
    FrameBuilder frame;
    auto bits = frame.session().initFutexWaiting().initBits(GPR_WAITER_WORDS);
    for (unsigned i = 0; i < bits.size(); i++) bits.set(i, waiting.words[i]);
    link_.send(frame, Priority::urgent);
}

bool FutexNews::tell(pid_t name, const FutexWakeCall& wake) {
    if (elsewhere_ && !elsewhere_->may_wait(wake.address)) return false;
    FrameBuilder frame;
    auto out = frame.session().initFutexWoken();
    out.setPid(name);
    out.setAddress(wake.address);
    out.setCount(wake.count);
    out.setBitset(wake.bitset);
    out.setShared(wake.shared);
    link_.send(frame, Priority::urgent);
    return true;
}

FutexWakeCall FutexNews::told(wire::FutexWake::Reader wake) {
    return {wake.getAddress(), wake.getCount(), wake.getBitset(), wake.getShared()};
}

void FutexNews::heard(wire::FutexWaiters::Reader waiters) {
    WaiterSummary summary = WaiterSummary::everything();
    auto bits = waiters.getBits();
    // Another size would be another hash: then nothing can be left out.
    if (bits.size() == GPR_WAITER_WORDS) std::copy(bits.begin(), bits.end(), summary.words.begin());
    elsewhere_ = summary;
    if (watch_) watch_->set_elsewhere(summary);
}

}  // namespace gpr
