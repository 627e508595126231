// Keeps the supervisor on the processor of the thread that it serves, where a stop that is answered
// costs some 8 µs. On two processors, each falls asleep and is woken at each stop: some 70 µs.
//
// While it follows a thread, the supervisor gives way (SCHED_IDLE): the kernel then counts its
// processor as idle, and lets the thread continue there. Otherwise it moves the thread to a
// processor that is idle, as this one is in use.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>

#include "transport/loop.h"

namespace gpr {

// Decides which thread to follow, by its events: one that has nearly all of them, in quick
// succession. Pure.
class Conversation {
public:
    using Time = std::chrono::steady_clock::time_point;

    enum class Advice { go_on, follow, look_again, leave };
    // follow: `tid`, from now on. look_again: it may be on another processor by now. leave: the
    // thread that is followed.
    Advice on_event(pid_t tid, Time now);
    // Nobody is followed any more.
    void end(Time now);
    [[nodiscard]] bool follows() const { return follows_; }

private:
    Advice on_window(Time now);

    pid_t tid_ = 0;
    bool follows_ = false;
    uint32_t events_ = 0, of_others_ = 0;  // in this window
    uint32_t windows_ = 0;                 // while it has been followed
    Time window_began_, waits_until_;
    std::chrono::milliseconds wait_{0};  // after something that was no long conversation
};

class ProcessorFollower {
public:
    // Of the calling thread. The loop must live longer.
    explicit ProcessorFollower(Loop& loop);
    ~ProcessorFollower();
    ProcessorFollower(const ProcessorFollower&) = delete;
    ProcessorFollower& operator=(const ProcessorFollower&) = delete;

    // The thread has stopped, and continues when we have answered. Nobody but such threads may need
    // this supervisor: who computes on the same processor holds it up.
    void on_event(pid_t tid);
    // Nobody is followed any more.
    void leave();

private:
    void follow(pid_t tid);
    void look_whether_quiet();

    Loop& loop_;
    Conversation conversation_;
    std::optional<cpu_set_t> own_processors_;  // to go back to
    int processor_ = -1;                       // that it keeps to
    const bool may_follow_;
    uint64_t events_ = 0, events_seen_ = 0;
    std::optional<Loop::TimerId> timer_;
};

}  // namespace gpr
