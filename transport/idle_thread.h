// Work that nobody waits for and that may block: a thread does one piece of it after the other,
// behind the other threads of this host (niceness 19).
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "base/fd.h"
#include "transport/loop.h"

namespace gpr {

class IdleThread {
public:
    // Set when nobody wants the work any more: long work should look at it.
    using Stopped = std::atomic<bool>;
    // Runs in the thread, and must not use what belongs to the loop's.
    using Work = std::function<void(const Stopped&)>;

    explicit IdleThread(Loop& loop) : loop_(loop) {}
    IdleThread(const IdleThread&) = delete;
    IdleThread& operator=(const IdleThread&) = delete;
    // Drops what has not begun, and waits for what has.
    ~IdleThread();

    // done: called in the loop after the work, unless this object has ended. False: there can be no
    // thread.
    bool run(Work work, std::function<void()> done);

private:
    struct Job {
        Work work;
        std::function<void()> done;
    };
    bool start();
    void serve();
    void collect();

    Loop& loop_;
    Fd bell_;  // an eventfd: work is done
    Watch heard_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Job> waiting_;                 // under the mutex
    std::deque<std::function<void()>> done_;  // likewise
    Stopped stopped_{false};
    std::thread thread_;
};

}  // namespace gpr
