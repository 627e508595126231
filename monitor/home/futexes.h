// Futexes as home sees them: wakes here for waiters elsewhere, and the reverse.
#pragma once

#include <memory>

#include "monitor/home/part.h"
#include "monitor/node/futex_moves.h"
#include "monitor/node/futex_news.h"

namespace gpr::home {

class Futexes {
public:
    explicit Futexes(Home& home);

    [[nodiscard]] FutexNews& news() { return news_; }

    // Optional, before start(): private wakes are reported by the watch instead of being
    // intercepted.
    void watch_futexes(std::unique_ptr<CallWatch> watch);
    // Nothing of the session is at an acceptor any more.
    void stop_watching() { news_.stop(); }
    void futex_call(HomeProcess& process, HomeThread& thread, const Notification& n);
    static bool is_futex_call(uint32_t number);
    // For a vfork child, whose memory belongs to a process that may run at an acceptor.
    void call_of_vfork_child(HomeThread& thread, const Notification& n);
    void send_futex_wake(HomeProcess& process, const FutexWakeCall& wake);
    // FUTEX_WOKEN, FUTEX_WAITING, FUTEX_MOVE.
    void on_frame(const Frame& frame, NodeId from);

private:
    void tell_futex_wake(HomeProcess& process, const Notification& n);
    void tell_wake(HomeProcess& process, const FutexWakeCall& wake);
    Task<void> on_futex_wake(Frame frame, NodeId from);
    Task<void> on_futex_move(Frame frame, NodeId from);
    Task<void> see_wait_through(pid_t child, pid_t tid, FutexWait wait);
    Task<void> futex_call_in_memory(HomeProcess& process, HomeThread& thread, Notification n);
    Task<void> move_call(pid_t pid, std::shared_ptr<Fragment> fragment, FutexMove move,
                         Notification n);

    Home& home_;
    FutexNews news_;
    FutexMoves moves_;
};

}  // namespace gpr::home
