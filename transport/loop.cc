#include "transport/loop.h"

#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <x86intrin.h>

#include <algorithm>

#include "base/uapi/io_uring.h"

namespace gpr {

using namespace std::chrono_literals;

namespace {
constexpr unsigned ring_entries = 256;
// user_data of requests whose completion we ignore.
constexpr uint64_t ignored = 0;
constexpr uint64_t timeout_id = ~uint64_t{0};
// Longer than a round trip between two hosts of one data center, and than a thread's short stay at
// the other end: an answer that is missed by a little costs a wake, and the next polls as well. A
// program that imports or compiles makes a call every 200 µs, and each that finds us asleep costs
// it 100 µs more.
constexpr std::chrono::microseconds spin_time{400};
constexpr int polls_per_clock_reading = 16;
constexpr size_t most_polled = 32;
constexpr std::chrono::milliseconds exact_timer{2};
constexpr std::chrono::nanoseconds longest_sleep = std::chrono::minutes(1);
// Who gets the processor while we poll gives it back after some microseconds, or else computes.
constexpr std::chrono::milliseconds lent_to_who_computes{1};
constexpr std::chrono::microseconds ask_every{20};
// Whether nothing runs: a no that took longer than this is good for a multiple of its time.
constexpr std::chrono::nanoseconds cheap_to_ask{5'000}, longest_unasked{1'000'000};
constexpr int asked_for_one_in = 16;
}  // namespace

void Watch::reset() {
    if (loop_) std::exchange(loop_, nullptr)->unwatch(id_);
}

void Reception::start(std::span<std::byte> to, std::shared_ptr<void> owner) {
    loop_->start_reception(id_, to, std::move(owner));
}

void Reception::reset() {
    if (loop_) std::exchange(loop_, nullptr)->end_reception(id_);
}

Result<std::unique_ptr<Loop>> Loop::create() {
    std::unique_ptr<Loop> loop(new Loop);
    // One thread submits and waits, and completions are only looked at when it waits. So the kernel
    // need not interrupt it (Linux 6.1), and a flag says whether there are any. Older kernels get a
    // plain ring.
    unsigned fast =
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
    int rc = io_uring_queue_init(ring_entries, &loop->ring_, fast);
    if (rc == -EINVAL) rc = io_uring_queue_init(ring_entries, &loop->ring_, 0);
    if (rc < 0) return fail(-rc, "cannot create the io_uring event loop");
    loop->ring_ready_ = true;
    io_uring_register_ring_fd(&loop->ring_);  // saves a descriptor look-up per call; optional
    return loop;
}

Loop::~Loop() {
    // What these hold may watch descriptors or set timers here until it is gone.
    while (!timers_.empty() || !ready_.empty()) {
        auto timers = std::exchange(timers_, {});
        auto ready = std::exchange(ready_, {});
    }
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
    auto& w = watched_[id] = {fd, events, std::make_shared<Handler>(std::move(handler)), Fd{}};
    arm(id, w);
    return {this, id};
}

Watch Loop::watch_near(int fd, uint32_t events, Handler handler) {
    near_.insert(next_id_);
    return watch(fd, events, std::move(handler));
}

void Loop::arm(uint64_t id, const Watched& watched) {
    io_uring_sqe* entry = sqe();
    if (watched.epoll) {
        io_uring_prep_poll_add(entry, watched.epoll.get(), POLLIN);
    } else {
        io_uring_prep_poll_add(entry, watched.fd, watched.events);
    }
    io_uring_sqe_set_data64(entry, id);
}

Watch Loop::watch_word(const uint32_t* word, uint32_t value, std::function<void()> handler) {
    const uint64_t id = next_id_++;
    words_[id] = std::move(handler);
    io_uring_sqe* entry = sqe();
    io_uring_prep_rw(io_uring_futex_wait, entry, io_uring_futex_of_32_bits, word, 0, value);
    entry->addr3 = ~0U;  // whatever bits the one who wakes us names
    io_uring_sqe_set_data64(entry, id);
    return {this, id};
}

bool Loop::can_watch_words() const {
    io_uring_probe* probe = io_uring_get_probe_ring(const_cast<io_uring*>(&ring_));
    const bool can = probe && io_uring_opcode_supported(probe, io_uring_futex_wait);
    io_uring_free_probe(probe);
    return can;
}

bool Loop::complete_word(uint64_t id) {
    auto it = words_.find(id);
    if (it == words_.end()) return false;
    const auto handler = std::move(it->second);
    words_.erase(it);
    handler();
    return true;
}

void Loop::unwatch(uint64_t id) {
    near_.erase(id);
    if (words_.erase(id) > 0) {
        io_uring_sqe* cancel = sqe();
        io_uring_prep_cancel64(cancel, id, 0);
        io_uring_sqe_set_data64(cancel, ignored);
        return;
    }
    if (watched_.erase(id) == 0) return;
    io_uring_sqe* entry = sqe();
    io_uring_prep_poll_remove(entry, id);
    io_uring_sqe_set_data64(entry, ignored);
    // Submit now, so that the ring drops its reference to the file before the caller closes the
    // descriptor.
    io_uring_submit_and_get_events(&ring_);
}

Reception Loop::receive(int fd, std::function<void(int result)> handler) {
    uint64_t id = next_id_++;
    receiving_[id] = {fd, std::make_shared<std::function<void(int)>>(std::move(handler)), nullptr};
    return {this, id};
}

void Loop::start_reception(uint64_t id, std::span<std::byte> to, std::shared_ptr<void> owner) {
    auto& receiving = receiving_.at(id);
    GPR_ASSERT(!receiving.owner && owner);
    receiving.owner = std::move(owner);
    io_uring_sqe* entry = sqe();
    io_uring_prep_recv(entry, receiving.fd, to.data(), to.size(), 0);
    entry->ioprio |= IORING_RECVSEND_POLL_FIRST;  // this is called when there is nothing to read
    io_uring_sqe_set_data64(entry, id);
}

void Loop::end_reception(uint64_t id) {
    auto it = receiving_.find(id);
    if (!it->second.owner) {
        receiving_.erase(it);
        return;
    }
    it->second.handler.reset();
    io_uring_sqe* entry = sqe();
    io_uring_prep_cancel64(entry, id, 0);
    io_uring_sqe_set_data64(entry, ignored);
    io_uring_submit_and_get_events(&ring_);  // now, as in unwatch()
}

bool Loop::complete_reception(uint64_t id, int result) {
    auto it = receiving_.find(id);
    if (it == receiving_.end()) return false;
    it->second.owner.reset();  // first, because the handler looks whether the buffer is free again
    auto handler = it->second.handler;
    if (handler) {
        (*handler)(result);
    } else {
        receiving_.erase(it);
    }
    return true;
}

void Loop::synchronise(int fd, std::function<void(int result)> handler) {
    const uint64_t id = next_id_++;
    synchronising_.emplace(id, std::move(handler));
    io_uring_sqe* entry = sqe();
    io_uring_prep_fsync(entry, fd, IORING_FSYNC_DATASYNC);
    io_uring_sqe_set_data64(entry, id);
}

bool Loop::complete_synchronising(uint64_t id, int result) {
    auto it = synchronising_.find(id);
    if (it == synchronising_.end()) return false;
    const auto handler = std::move(it->second);
    synchronising_.erase(it);
    handler(result);
    return true;
}

void Loop::complete_watch(uint64_t id, int result) {
    auto it = watched_.find(id);
    if (it == watched_.end() || result == -ECANCELED) return;
    auto handler = it->second.handler;  // a copy, because the handler may unwatch itself
    auto revents = result < 0 ? uint32_t{POLLERR} : static_cast<uint32_t>(result);
    if (it->second.epoll) {
        epoll_event event{};
        revents = epoll_wait(it->second.epoll.get(), &event, 1, 0) == 1 ? event.events : 0;
    }
    revents &= it->second.events | POLLERR | POLLHUP | POLLNVAL;
    if (revents != 0) {
        (*handler)(revents);
    } else if (!it->second.epoll) {
        look_through_epoll(it->second);
    }
    it = watched_.find(id);
    if (it != watched_.end()) arm(id, it->second);
}

// The ring also tells that the other end sends no more (POLLRDHUP), which nobody asked for and
// which lasts. epoll(7) does not.
void Loop::look_through_epoll(Watched& watched) {
    Fd epoll(epoll_create1(EPOLL_CLOEXEC));
    epoll_event event{};
    event.events = watched.events;
    if (epoll && epoll_ctl(epoll.get(), EPOLL_CTL_ADD, watched.fd, &event) == 0) {
        watched.epoll = std::move(epoll);
    }
}

Loop::TimerId Loop::after(std::chrono::nanoseconds delay, std::function<void()> work) {
    TimerId id = next_id_++;
    const Clock::time_point due = Clock::now() + delay;
    timers_.emplace(std::pair{due, id}, std::move(work));
    timers_due_.emplace(id, due);
    return id;
}

void Loop::cancel(TimerId id) {
    auto due = timers_due_.find(id);
    if (due == timers_due_.end()) return;
    timers_.erase({due->second, id});
    timers_due_.erase(due);
}

void Loop::post(std::function<void()> work) { ready_.push_back(std::move(work)); }

void Loop::run_ready() {
    while (!ready_.empty() && !stopped_) {
        auto work = std::move(ready_.front());
        ready_.pop_front();
        work();
    }
}

// Those that are due now. What they add comes after the descriptors: work that is done in pieces,
// with a timer of zero between them, leaves room for others.
void Loop::run_timers() {
    const auto now = Clock::now();
    while (!timers_.empty() && timers_.begin()->first.first <= now && !stopped_) {
        auto work = std::move(timers_.begin()->second);
        timers_due_.erase(timers_.begin()->first.second);
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
        if (id == timeout_id) {
            // A timeout that was replaced by an earlier one ends with ECANCELED.
            if (result != -ECANCELED) armed_until_ = Clock::time_point::max();
        } else if (id != ignored && !complete_word(id) && !complete_reception(id, result) &&
                   !complete_synchronising(id, result)) {
            complete_watch(id, result);
        }
        run_ready();
    }
}

Clock::time_point Loop::first_timer() const {
    return timers_.empty() ? Clock::time_point::max() : timers_.begin()->first.first;
}

// A timeout that stays armed costs less than one that is set up and cancelled at every wait.
void Loop::arm_timeout() {
    if (timers_.empty() || timers_.begin()->first.first >= armed_until_) return;
    if (armed_until_ != Clock::time_point::max()) {
        io_uring_sqe* entry = sqe();
        io_uring_prep_timeout_remove(entry, timeout_id, 0);
        io_uring_sqe_set_data64(entry, ignored);
    }
    armed_until_ = timers_.begin()->first.first;
    auto at = std::chrono::nanoseconds(armed_until_.time_since_epoch()).count();
    timeout_ = {at / 1'000'000'000, at % 1'000'000'000};
    io_uring_sqe* entry = sqe();
    // steady_clock is CLOCK_MONOTONIC, the default of this request.
    io_uring_prep_timeout(entry, &timeout_, 0, IORING_TIMEOUT_ABS);
    io_uring_sqe_set_data64(entry, timeout_id);
}

// To look at all threads of many processes takes longer than polling would save.
bool Loop::may_spin() {
    const auto begin = Clock::now();
    if (begin < asks_again_) return false;
    if (nothing_runs_()) return true;
    const auto end = Clock::now();
    const std::chrono::nanoseconds took = end - begin;
    if (took > cheap_to_ask) asks_again_ = end + std::min(asked_for_one_in * took, longest_unasked);
    return false;
}

bool Loop::spin() {
    auto begin = Clock::now();
    if (contention_.found(begin)) return false;
    if (io_uring_sq_ready(&ring_) > 0) io_uring_submit(&ring_);
    io_uring_cqe* completion = nullptr;
    bool found = false;
    bool wanted = true;
    auto ask_at = begin + ask_every;
    const auto end = std::min(begin + spin_time, first_timer());
    for (auto now = begin; !found && wanted && now < end;) {
        for (int i = 0; i < polls_per_clock_reading && !found; i++) {
            found = io_uring_peek_cqe(&ring_, &completion) == 0;
            if (!found) _mm_pause();
        }
        // What we wait for may need this processor: the kernel does not take it away from us for
        // who has just become ready, and leaves them waiting even where another one is idle.
        if (!found) sched_yield();
        const auto after = Clock::now();
        wanted = after - now < lent_to_who_computes;
        now = after;
        if (wanted && now > ask_at) {
            wanted = nothing_runs_();
            ask_at = now + ask_every;
        }
    }
    const bool timer_is_due = !found && wanted && end != begin + spin_time;
    if (!timer_is_due) spin_history_.ended(found && wanted);
    return found || timer_is_due;
}

// A request of the ring for an event wakes us where we fell asleep, poll(2) where the kernel wants
// us. So we sleep in poll(2) for the very events that the ring has been asked for, and let the ring
// tell of them. It would not tell us of words and of synchronised files there: an eventfd that is
// registered with a ring misses events that come from other eventfds (Linux 6.18). Nor do we sleep
// there after poll(2) saw an event of which the ring knows nothing: records of BPF that wake nobody
// yet, a descriptor that was closed.
bool Loop::can_sleep_in_poll() {
    return !std::exchange(polled_in_vain_, false) && (ring_.flags & IORING_SETUP_DEFER_TASKRUN) &&
           !near_.empty() && words_.empty() && synchronising_.empty() &&
           watched_.size() + receiving_.size() <= most_polled &&
           (timers_.empty() || first_timer() - Clock::now() > exact_timer);
}

void Loop::sleep_in_poll() {
    if (io_uring_sq_ready(&ring_) > 0) io_uring_submit(&ring_);
    io_uring_cqe* completion = nullptr;
    if (io_uring_peek_cqe(&ring_, &completion) == 0) return;
    polled_.clear();
    for (const auto& [id, watched] : watched_) {
        polled_.push_back({watched.fd, static_cast<short>(watched.events), 0});
    }
    for (const auto& [id, receiving] : receiving_) {
        if (receiving.owner && receiving.handler) polled_.push_back({receiving.fd, POLLIN, 0});
    }
    // poll(2) may be late by a thousandth part, or five of them: the ring does the rest.
    std::chrono::nanoseconds most = longest_sleep;
    if (!timers_.empty()) most = std::min(most, first_timer() - Clock::now());
    most -= std::max<std::chrono::nanoseconds>(exact_timer, most / 200);
    if (most < 0ns || (*ring_.sq.kflags & IORING_SQ_TASKRUN)) most = 0ns;
    const timespec timeout{most.count() / 1'000'000'000, most.count() % 1'000'000'000};
    const int found = ppoll(polled_.data(), polled_.size(), &timeout, nullptr);
    polled_in_vain_ = found != 0 && io_uring_peek_cqe(&ring_, &completion) != 0;
    if (found <= 0) return;
    // A list of mounts tells of a change only once: to us, and not to the ring.
    std::vector<uint64_t> told;
    size_t at = 0;
    for (const auto& [id, watched] : watched_) {
        if (polled_[at++].revents & POLLPRI) told.push_back(id);
    }
    for (const uint64_t id : told) {
        polled_in_vain_ = false;
        auto it = watched_.find(id);
        if (it == watched_.end()) continue;
        auto handler = it->second.handler;  // a copy, because the handler may unwatch itself
        (*handler)(POLLPRI);
    }
}

void Loop::wait() {
    if (nothing_runs_ && spin_history_.wanted() && may_spin() && spin()) return;
    if (can_sleep_in_poll()) return sleep_in_poll();
    arm_timeout();
    io_uring_submit_and_wait(&ring_, 1);
}

void Loop::run() {
    while (!stopped_) {
        run_ready();
        run_timers();
        if (stopped_) break;
        if (before_sleep_) before_sleep_();
        if (stopped_) break;
        if (!ready_.empty()) continue;
        wait();
        reap();
    }
    stopped_ = false;
}

}  // namespace gpr
