#include "transport/loop.h"

#include <poll.h>

namespace gpr {

namespace {
constexpr unsigned ring_entries = 256;
// user_data of requests whose completion carries nothing for us
constexpr uint64_t ignored = 0;
}  // namespace

void Watch::reset() {
    if (loop_) std::exchange(loop_, nullptr)->unwatch(id_);
}

Result<std::unique_ptr<Loop>> Loop::create() {
    std::unique_ptr<Loop> loop(new Loop);
    int rc = io_uring_queue_init(ring_entries, &loop->ring_, 0);
    if (rc < 0) return fail(-rc, "cannot create the io_uring event loop");
    loop->ring_ready_ = true;
    return loop;
}

Loop::~Loop() {
    if (ring_ready_) io_uring_queue_exit(&ring_);
}

io_uring_sqe* Loop::sqe() {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    while (!entry) {
        io_uring_submit(&ring_);
        entry = io_uring_get_sqe(&ring_);
    }
    return entry;
}

Watch Loop::watch(int fd, uint32_t events, Handler handler) {
    uint64_t id = next_id_++;
    auto& w = watched_[id] = {fd, events, std::make_shared<Handler>(std::move(handler))};
    arm(id, w);
    return {this, id};
}

void Loop::arm(uint64_t id, const Watched& watched) {
    io_uring_sqe* entry = sqe();
    io_uring_prep_poll_add(entry, watched.fd, watched.events);
    io_uring_sqe_set_data64(entry, id);
}

void Loop::unwatch(uint64_t id) {
    if (watched_.erase(id) == 0) return;
    io_uring_sqe* entry = sqe();
    io_uring_prep_poll_remove(entry, id);
    io_uring_sqe_set_data64(entry, ignored);
    // Submitted now, so that the ring drops its reference before the caller closes the fd.
    io_uring_submit(&ring_);
}

Loop::TimerId Loop::after(std::chrono::nanoseconds delay, std::function<void()> work) {
    TimerId id = next_id_++;
    timers_.emplace(Clock::now() + delay, std::make_pair(id, std::move(work)));
    return id;
}

void Loop::cancel(TimerId id) {
    for (auto it = timers_.begin(); it != timers_.end(); ++it) {
        if (it->second.first == id) {
            timers_.erase(it);
            return;
        }
    }
}

void Loop::post(std::function<void()> work) { ready_.push_back(std::move(work)); }

void Loop::run_ready() {
    while (!ready_.empty() && !stopped_) {
        auto work = std::move(ready_.front());
        ready_.pop_front();
        work();
    }
}

void Loop::run_timers() {
    while (!timers_.empty() && timers_.begin()->first <= Clock::now() && !stopped_) {
        auto work = std::move(timers_.begin()->second.second);
        timers_.erase(timers_.begin());
        work();
        run_ready();
    }
}

void Loop::reap() {
    io_uring_cqe* completion = nullptr;
    while (!stopped_ && io_uring_peek_cqe(&ring_, &completion) == 0) {
        uint64_t id = io_uring_cqe_get_data64(completion);
        int result = completion->res;
        io_uring_cqe_seen(&ring_, completion);
        auto it = id == ignored ? watched_.end() : watched_.find(id);
        if (it == watched_.end() || result == -ECANCELED) continue;
        auto handler = it->second.handler;  // survives its own unwatch
        (*handler)(result < 0 ? POLLERR : static_cast<uint32_t>(result));
        it = watched_.find(id);
        if (it != watched_.end()) arm(id, it->second);
        run_ready();
    }
}

void Loop::run() {
    while (!stopped_) {
        run_ready();
        run_timers();
        if (stopped_) break;
        if (before_sleep_) before_sleep_();
        if (stopped_) break;
        if (!ready_.empty()) continue;
        io_uring_cqe* completion = nullptr;
        if (timers_.empty()) {
            io_uring_submit_and_wait(&ring_, 1);
        } else {
            auto left = timers_.begin()->first - Clock::now();
            auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
            if (ns < 0) ns = 0;
            __kernel_timespec timeout{ns / 1'000'000'000, ns % 1'000'000'000};
            io_uring_submit_and_wait_timeout(&ring_, &completion, 1, &timeout, nullptr);
        }
        reap();
    }
}

}  // namespace gpr
