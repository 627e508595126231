// Coroutines for the single loop thread. A Task is lazy and awaited once; spawn() starts one that
// is not awaited.
//
// g++-12 destroys temporaries of a co_await expression too early in some cases (gcc bugs 99576,
// 101367), so give a name to what you pass to a coroutine before awaiting it.
#pragma once

#include <coroutine>
#include <deque>
#include <exception>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"

namespace gpr {

template <class T>
class Task;

namespace detail {

struct TaskPromiseBase {
    std::coroutine_handle<> continuation = std::noop_coroutine();

    std::suspend_always initial_suspend() noexcept { return {}; }
    struct FinalAwaiter {
        bool await_ready() noexcept { return false; }
        template <class P>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<P> self) noexcept {
            return self.promise().continuation;
        }
        void await_resume() noexcept {}
    };
    FinalAwaiter final_suspend() noexcept { return {}; }
    void unhandled_exception() { std::terminate(); }
};

template <class T>
struct TaskPromise : TaskPromiseBase {
    std::optional<T> value;
    Task<T> get_return_object();
    template <class U>
    void return_value(U&& v) {
        value.emplace(std::forward<U>(v));
    }
};

template <>
struct TaskPromise<void> : TaskPromiseBase {
    Task<void> get_return_object();
    void return_void() {}
};

}  // namespace detail

template <class T = void>
class [[nodiscard]] Task {
public:
    using promise_type = detail::TaskPromise<T>;

    explicit Task(std::coroutine_handle<promise_type> h) : handle_(h) {}
    Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Task(const Task&) = delete;
    Task& operator=(Task&&) = delete;
    ~Task() {
        if (handle_) handle_.destroy();
    }

    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) noexcept {
        handle_.promise().continuation = awaiting;
        return handle_;
    }
    T await_resume() {
        if constexpr (!std::is_void_v<T>) return std::move(*handle_.promise().value);
    }

private:
    std::coroutine_handle<promise_type> handle_;
};

namespace detail {
template <class T>
Task<T> TaskPromise<T>::get_return_object() {
    return Task<T>(std::coroutine_handle<TaskPromise<T>>::from_promise(*this));
}
inline Task<void> TaskPromise<void>::get_return_object() {
    return Task<void>(std::coroutine_handle<TaskPromise<void>>::from_promise(*this));
}

struct Detached {
    struct promise_type {
        Detached get_return_object() { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
};
inline Detached run_detached(Task<void> task) { co_await task; }
}  // namespace detail

// Runs until the first suspension; the coroutine frees its frame when it ends.
inline void spawn(Task<void> task) { detail::run_detached(std::move(task)); }

// Resumes coroutines later, from the loop and not from inside the event that woke them.
class Scheduler {
public:
    virtual ~Scheduler() = default;
    virtual void post(std::function<void()> work) = 0;
};

// One value for one waiter. It may be set before it is awaited. It must outlive the waiter's
// suspension.
template <class T>
class OneShot {
public:
    explicit OneShot(Scheduler& scheduler) : scheduler_(scheduler) {}
    OneShot(const OneShot&) = delete;
    OneShot& operator=(const OneShot&) = delete;

    void set(T value) {
        if (value_) return;
        value_.emplace(std::move(value));
        if (waiter_) {
            auto h = std::exchange(waiter_, nullptr);
            scheduler_.post([h] { h.resume(); });
        }
    }

    bool await_ready() const noexcept { return value_.has_value(); }
    void await_suspend(std::coroutine_handle<> h) noexcept { waiter_ = h; }
    T await_resume() { return std::move(*value_); }

private:
    Scheduler& scheduler_;
    std::optional<T> value_;
    std::coroutine_handle<> waiter_ = nullptr;
};

// A condition that many coroutines can wait for; after notify_all() each checks again.
class Signal {
public:
    explicit Signal(Scheduler& scheduler) : scheduler_(scheduler) {}
    Signal(const Signal&) = delete;
    Signal& operator=(const Signal&) = delete;

    void notify_all() {
        for (auto h : std::exchange(waiters_, {})) scheduler_.post([h] { h.resume(); });
    }
    auto wait() {
        struct Awaiter {
            Signal& signal;
            bool await_ready() const noexcept { return false; }
            void await_suspend(std::coroutine_handle<> h) { signal.waiters_.push_back(h); }
            void await_resume() const noexcept {}
        };
        return Awaiter{*this};
    }

private:
    Scheduler& scheduler_;
    std::vector<std::coroutine_handle<>> waiters_;
};

// A mutex between the coroutines of one loop; waiters get it in their order of arrival.
class AsyncMutex {
public:
    explicit AsyncMutex(Scheduler& scheduler) : scheduler_(scheduler) {}
    AsyncMutex(const AsyncMutex&) = delete;
    AsyncMutex& operator=(const AsyncMutex&) = delete;

    class Guard {
    public:
        explicit Guard(AsyncMutex* m) : mutex_(m) {}
        Guard(Guard&& o) noexcept : mutex_(std::exchange(o.mutex_, nullptr)) {}
        Guard(const Guard&) = delete;
        Guard& operator=(Guard&& o) noexcept {
            release();
            mutex_ = std::exchange(o.mutex_, nullptr);
            return *this;
        }
        ~Guard() { release(); }
        void release() {
            if (mutex_) std::exchange(mutex_, nullptr)->unlock();
        }

    private:
        AsyncMutex* mutex_;
    };

    auto lock() {
        struct Awaiter {
            AsyncMutex& mutex;
            bool await_ready() const noexcept { return !std::exchange(mutex.locked_, true); }
            void await_suspend(std::coroutine_handle<> h) { mutex.waiters_.push_back(h); }
            Guard await_resume() const noexcept { return Guard(&mutex); }
        };
        return Awaiter{*this};
    }
    [[nodiscard]] bool locked() const { return locked_; }

private:
    void unlock() {
        if (waiters_.empty()) {
            locked_ = false;
            return;
        }
        auto h = waiters_.front();
        waiters_.pop_front();
        scheduler_.post([h] { h.resume(); });
    }

    Scheduler& scheduler_;
    bool locked_ = false;
    std::deque<std::coroutine_handle<>> waiters_;
};

}  // namespace gpr
