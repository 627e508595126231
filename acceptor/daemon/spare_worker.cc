#include "acceptor/daemon/spare_worker.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "acceptor/box/worker_process.h"
#include "base/log.h"
#include "monitor/node/process_names.h"

namespace gpr {

namespace {

// The next one is not started while a session begins, nor at once where they do not live.
constexpr std::chrono::milliseconds after_session{20};
constexpr std::chrono::seconds after_failure{30};

}  // namespace

void SpareWorker::look() {
    if (!is_wanted_ || pid_ != 0 || Clock::now() < next_at_) return;
    next_at_ = Clock::now() + after_failure;
    std::array<int, 2> channel{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel.data()) != 0) return;
    Fd ours(channel[0]);
    Fd theirs(channel[1]);
    const pid_t daemon = getpid();
    const pid_t pid = fork();
    if (pid == 0) {
        become_worker_process(daemon);
        prctl(PR_SET_NAME, spare_process_name);
        ours.reset();
        _exit(execute_spare(std::move(theirs)));
    }
    if (pid < 0) return;
    spdlog::debug("worker {} waits for a session", pid);
    pid_ = pid;
    channel_ = std::move(ours);
}

int SpareWorker::wait_ms(int most) const {
    if (!is_wanted_ || pid_ != 0) return most;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_at_ - Clock::now());
    const int own = static_cast<int>(std::max<int64_t>(left.count(), 0));
    return most < 0 ? own : std::min(own, most);
}

std::optional<pid_t> SpareWorker::take(const OrderedSession& session) {
    if (pid_ == 0) return std::nullopt;
    next_at_ = Clock::now() + after_session;
    const Fd channel = std::move(channel_);
    const pid_t pid = std::exchange(pid_, 0);
    if (hand_over(channel, session)) return pid;
    return std::nullopt;
}

bool SpareWorker::note_end(pid_t pid) {
    if (pid_ == 0 || pid != pid_) return false;
    spdlog::warn("a worker that waited for a session has ended");
    dismiss();
    return true;
}

void SpareWorker::dismiss() {
    pid_ = 0;
    channel_.reset();
    next_at_ = Clock::now() + after_failure;
}

}  // namespace gpr
