// The one event loop of a session: io_uring, one thread, handlers that never block.
#pragma once

#include <liburing.h>
#include <poll.h>

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/task.h"
#include "transport/spin.h"

namespace gpr {

using Clock = std::chrono::steady_clock;

class Loop;

// Watches a descriptor, or a word, as long as it lives. What it watches must outlive it.
class Watch {
public:
    Watch() = default;
    Watch(Loop* loop, uint64_t id) : loop_(loop), id_(id) {}
    Watch(Watch&& o) noexcept : loop_(std::exchange(o.loop_, nullptr)), id_(o.id_) {}
    Watch& operator=(Watch&& o) noexcept {
        reset();
        loop_ = std::exchange(o.loop_, nullptr);
        id_ = o.id_;
        return *this;
    }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch() { reset(); }
    void reset();

private:
    Loop* loop_ = nullptr;
    uint64_t id_ = 0;
};

// Receives from one socket, one buffer at a time, as part of the loop's own wait, which saves a
// system call compared with waiting for POLLIN. The destructor cancels. The loop keeps the buffer's
// owner as long as the kernel may write to the buffer.
class Reception {
public:
    Reception() = default;
    Reception(Loop* loop, uint64_t id) : loop_(loop), id_(id) {}
    Reception(Reception&& o) noexcept : loop_(std::exchange(o.loop_, nullptr)), id_(o.id_) {}
    Reception& operator=(Reception&& o) noexcept {
        reset();
        loop_ = std::exchange(o.loop_, nullptr);
        id_ = o.id_;
        return *this;
    }
    Reception(const Reception&) = delete;
    Reception& operator=(const Reception&) = delete;
    ~Reception() { reset(); }

    // The handler gets what recv(2) would return, or -errno. Do not call start() again before that.
    void start(std::span<std::byte> to, std::shared_ptr<void> owner);
    void reset();

private:
    Loop* loop_ = nullptr;
    uint64_t id_ = 0;
};

class Loop : public Scheduler {
public:
    using Handler = std::function<void(uint32_t revents)>;
    using TimerId = uint64_t;

    // Call it in the process and thread that will run the loop: the kernel's ring is bound to them.
    static Result<std::unique_ptr<Loop>> create();
    ~Loop() override;

    // Level triggered: the handler is called again as long as the events (POLLIN, ...) last.
    [[nodiscard]] Watch watch(int fd, uint32_t events, Handler handler);

    // The same, and the events wake the loop on the processor of the thread that causes them, if
    // the kernel asks for that, as it does for SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP. The thread then
    // sleeps, and waking another processor, which is idle, costs 20 to 40 µs.
    [[nodiscard]] Watch watch_near(int fd, uint32_t events, Handler handler);

    // Calls the handler once, when the word no longer has this value and its writer has woken those
    // who wait for it (futex(2)), also in another process. It may be called without a change.
    [[nodiscard]] Watch watch_word(const uint32_t* word, uint32_t value,
                                   std::function<void()> handler);
    // Whether the kernel can do that (Linux 6.7).
    [[nodiscard]] bool can_watch_words() const;

    // The descriptor must outlive the reception.
    [[nodiscard]] Reception receive(int fd, std::function<void(int result)> handler);

    // Makes what was written to the file last (fdatasync(2)), without blocking. The handler gets 0
    // or -errno.
    void synchronise(int fd, std::function<void(int result)> handler);

    TimerId after(std::chrono::nanoseconds delay, std::function<void()> work);
    void cancel(TimerId id);

    // co_await loop.sleep(1ms);
    auto sleep(std::chrono::nanoseconds delay) {
        struct Awaiter {
            Loop& loop;
            std::chrono::nanoseconds delay;
            bool await_ready() const noexcept { return false; }
            void await_suspend(std::coroutine_handle<> h) {
                loop.after(delay, [h] { h.resume(); });
            }
            void await_resume() const noexcept {}
        };
        return Awaiter{*this, delay};
    }

    void post(std::function<void()> work) override;

    // Called before the loop sleeps, when nothing else is ready: the time to flush batches.
    void before_sleep(std::function<void()> work) { before_sleep_ = std::move(work); }

    // While `nothing_runs` says that no thread we serve could use the processor, and no other
    // process wants it, the loop polls for events a short time before it sleeps. It asks again
    // every 20 µs; less often where it takes long to say.
    void spin_while(std::function<bool()> nothing_runs) { nothing_runs_ = std::move(nothing_runs); }

    // Returns after stop(); may be called again.
    void run();
    void stop() { stopped_ = true; }

private:
    friend class Watch;
    friend class Reception;
    struct Watched {
        int fd;
        uint32_t events;
        std::shared_ptr<Handler> handler;
        Fd epoll;  // see look_through_epoll()
    };

    struct Receiving {
        int fd;
        std::shared_ptr<std::function<void(int)>> handler;  // null: only waiting for it to end
        std::shared_ptr<void> owner;                        // not null: the kernel has the buffer
    };

    Loop() = default;
    void start_reception(uint64_t id, std::span<std::byte> to, std::shared_ptr<void> owner);
    void end_reception(uint64_t id);
    bool complete_reception(uint64_t id, int result);
    void complete_watch(uint64_t id, int result);
    static void look_through_epoll(Watched& watched);
    bool complete_word(uint64_t id);
    bool complete_synchronising(uint64_t id, int result);
    void arm_timeout();
    void arm(uint64_t id, const Watched& watched);
    void unwatch(uint64_t id);
    io_uring_sqe* sqe();
    void run_ready();
    void run_timers();
    void reap();
    void wait();
    bool may_spin();
    bool spin();
    [[nodiscard]] Clock::time_point first_timer() const;
    [[nodiscard]] bool can_sleep_in_poll();
    void sleep_in_poll();

    io_uring ring_{};
    bool ring_ready_ = false;
    bool stopped_ = false;
    uint64_t next_id_ = 1;
    std::map<uint64_t, Watched> watched_;
    std::set<uint64_t> near_;  // of watched_
    std::map<uint64_t, std::function<void()>> words_;
    std::map<uint64_t, std::function<void(int)>> synchronising_;
    std::map<uint64_t, Receiving> receiving_;
    // The kernel's timer stays armed over many waits. It may be earlier than any timer of ours.
    Clock::time_point armed_until_ = Clock::time_point::max();
    __kernel_timespec timeout_{};
    std::vector<pollfd> polled_;  // while we sleep there
    bool polled_in_vain_ = false;
    std::map<std::pair<Clock::time_point, TimerId>, std::function<void()>> timers_;
    std::unordered_map<TimerId, Clock::time_point> timers_due_;
    std::deque<std::function<void()>> ready_;
    std::function<void()> before_sleep_;
    std::function<bool()> nothing_runs_;
    Clock::time_point asks_again_{};
    SpinHistory spin_history_;
    Contention contention_ = Contention::of_this_thread();
};

}  // namespace gpr
