// Futexes of a session as home sees them: what is waked here and waited for elsewhere, and back.
#pragma once

#include <memory>

#include "monitor/home/part.h"
#include "monitor/node/futex_news.h"

namespace gpr::home {

class Futexes {
public:
    explicit Futexes(Home& home);

    [[nodiscard]] FutexNews& news() { return news_; }

    // Before start(): private wakes are not stopped, the watch tells them.
    void watch_futexes(std::unique_ptr<CallWatch> watch);
    void futex_call(HomeProcess& process, HomeThread& thread, const Notification& n);
    static bool is_futex_call(uint32_t number);
    // Its memory is that of a process at the acceptor, or may be.
    void call_of_guest(HomeThread& thread, const Notification& n);
    void send_futex_wake(HomeProcess& process, const FutexWakeCall& wake);
    Task<void> on_futex_wake(Frame frame, NodeId from);

private:
    void tell_futex_wake(HomeProcess& process, const Notification& n);
    void tell_wake(HomeProcess& process, const FutexWakeCall& wake);
    Task<void> see_wait_through(pid_t guest, pid_t tid, FutexWait wait);
    Task<void> futex_call_in_memory(HomeProcess& process, HomeThread& thread, Notification n);

    Home& home_;
    FutexNews news_;
};

}  // namespace gpr::home
