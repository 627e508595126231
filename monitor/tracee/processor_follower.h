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
#include <functional>
#include <optional>

#include "base/fd.h"
#include "transport/loop.h"

namespace gpr {

// Decides which thread to follow, by its events: one that stops again and again; then whichever
// stops, as when programs start each other, but not several that do so in turns. Pure.
class Conversation {
public:
    using Time = std::chrono::steady_clock::time_point;

    enum class Advice { go_on, follow, look_again, leave };
    // follow: this thread, from now on. look_again: it may be on another processor by now. leave:
    // the thread that is followed; its events took long. moved: to another processor, perhaps.
    Advice on_event(pid_t tid, Time now, bool moved = false);
    // It took no longer than the thread itself did.
    void go_on(Time now);
    enum class Because {
        quiet,
        cannot,  // it is not possible now
        slow,    // perhaps the processor has other work: it is tried again later, and later still
    };
    // Nobody is followed any more.
    void end(Because why, Time now);
    [[nodiscard]] bool follows() const { return follows_; }

private:
    Advice on_other(pid_t tid, Time now);
    Advice end_window(Time now);

    pid_t tid_ = 0;
    bool follows_ = false;
    uint32_t events_ = 0;   // of it: in a row, and in this window while it is followed
    uint32_t changes_ = 0;  // in this window
    uint32_t windows_ = 0;  // while it has been followed
    Time began_;            // the row, or the window
    Time waits_until_;
    std::chrono::milliseconds wait_{0};
};

class ProcessorFollower {
public:
    // Of the calling thread. The loop must live longer. others_run: whether threads other than this
    // one run, whose stops would have to wait for the processor of this one.
    ProcessorFollower(Loop& loop, std::function<bool(pid_t tid)> others_run);
    ~ProcessorFollower();
    ProcessorFollower(const ProcessorFollower&) = delete;
    ProcessorFollower& operator=(const ProcessorFollower&) = delete;

    // The thread has stopped, and continues when we have answered. Nobody but such threads may need
    // this supervisor: who computes on the same processor holds it up. moved: to another processor,
    // perhaps, as an exec may do.
    void on_event(pid_t tid, bool moved = false);
    // Nobody is followed any more.
    void leave();

private:
    void follow(pid_t tid);
    void end(Conversation::Because why);
    void look_whether_quiet();
    // Since it was asked last.
    [[nodiscard]] bool was_held_up();

    Loop& loop_;
    const std::function<bool(pid_t tid)> others_run_;
    Conversation conversation_;
    std::optional<cpu_set_t> own_processors_;  // to go back to
    int processor_ = -1;                       // that it keeps to
    const bool may_follow_;
    const Fd delays_;  // what the kernel says of how long this thread waited to run
    uint64_t delay_ns_ = 0;
    uint64_t events_ = 0, events_seen_ = 0;
    std::optional<Loop::TimerId> timer_;
};

}  // namespace gpr
