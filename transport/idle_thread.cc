#include "transport/idle_thread.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <system_error>
#include <utility>

#include "base/log.h"

namespace gpr {

namespace {
constexpr int lowest_niceness = 19;
}  // namespace

IdleThread::~IdleThread() {
    if (!thread_.joinable()) return;
    {
        const std::lock_guard guard(mutex_);
        stopped_ = true;
        waiting_.clear();
    }
    changed_.notify_all();
    thread_.join();
}

bool IdleThread::run(Work work, std::function<void()> done) {
    if (!thread_.joinable() && !start()) return false;
    {
        const std::lock_guard guard(mutex_);
        waiting_.push_back({std::move(work), std::move(done)});
    }
    changed_.notify_one();
    return true;
}

// It handles no signal: those of this process are for the loop.
bool IdleThread::start() {
    bell_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!bell_) return false;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        thread_ = std::thread([this] { serve(); });
    } catch (const std::system_error& error) {
        spdlog::debug("no thread for work in the background: {}", error.what());
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!thread_.joinable()) return false;
    heard_ = loop_.watch(bell_.get(), POLLIN, [this](uint32_t) { collect(); });
    return true;
}

void IdleThread::serve() {
    // Not SCHED_IDLE: the loop might wait for ever for who holds the mutex.
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), lowest_niceness);
    pthread_setname_np(pthread_self(), "gpr-idle");
    std::unique_lock lock(mutex_);
    while (!stopped_) {
        if (waiting_.empty()) {
            changed_.wait(lock);
            continue;
        }
        Job job = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        job.work(stopped_);
        job.work = nullptr;  // what it holds may take long to end
        lock.lock();
        done_.push_back(std::move(job.done));
        // Who hears the bell may run at once in our place, and wants the mutex.
        lock.unlock();
        eventfd_write(bell_.get(), 1);
        lock.lock();
    }
}

void IdleThread::collect() {
    eventfd_t times = 0;
    eventfd_read(bell_.get(), &times);
    std::deque<std::function<void()>> done;
    {
        const std::lock_guard guard(mutex_);
        done.swap(done_);
    }
    for (auto& each : done) each();
}

}  // namespace gpr
