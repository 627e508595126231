#include "transport/spin.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace gpr {

namespace {
// The kernel formats a text for each reading, so do not read it more often than this.
constexpr std::chrono::milliseconds look_every{1};
constexpr uint64_t tolerated_share = 5;  // one part in five
}  // namespace

bool SpinHistory::wanted() {
    if (skip_ == 0) return true;
    skip_--;
    return false;
}

void SpinHistory::ended(bool found) {
    last_skipped_ = found ? 0 : std::min(most_skipped, std::max(1U, last_skipped_ * 2));
    skip_ = last_skipped_;
}

Contention Contention::of_this_thread() {
    return Contention(Fd(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)));
}

uint64_t Contention::delay_ns() const {
    char text[96] = "";
    if (!schedstat_ || pread(schedstat_.get(), text, sizeof text - 1, 0) <= 0) return 0;
    unsigned long long run = 0;
    unsigned long long delay = 0;
    std::sscanf(text, "%llu %llu", &run, &delay);
    return delay;
}

bool Contention::found(std::chrono::steady_clock::time_point now) {
    if (now - looked_at_ < look_every) return found_;
    uint64_t delay = delay_ns();
    auto passed = std::chrono::nanoseconds(now - looked_at_).count();
    found_ = (delay - delay_ns_) * tolerated_share > static_cast<uint64_t>(passed);
    looked_at_ = now;
    delay_ns_ = delay;
    return found_;
}

}  // namespace gpr
