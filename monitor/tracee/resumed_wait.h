// A signal that is ignored wakes nobody; but a tracer is told of it, and so it ends the system
// calls that begin again after no signal (signal(7), "Interruption of system calls") with EINTR.
// They are made again here, and end when they would have ended.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <optional>

#include "transport/loop.h"

namespace gpr {

// A stopped thread's call is one of those, and has just ended with EINTR.
bool is_interrupted_wait(const user_regs_struct& regs);
// It has, whatever comes next: by a stop of job control, after which it is not made again.
void let_wait_end(pid_t tid);
// It is made again from its beginning, as if there had been no stop.
void make_wait_again(pid_t tid);

class ResumedWait {
public:
    // Of the thread whose call was interrupted. begun: that call, if it is known; else its time is
    // counted from now. Nothing: its time cannot be known.
    static std::optional<ResumedWait> begin(pid_t process, pid_t tid, const user_regs_struct& regs,
                                            std::optional<Clock::time_point> begun);

    // It is interrupted again, and not another one that is like it.
    [[nodiscard]] bool is_interrupted(pid_t tid, const user_regs_struct& regs,
                                      std::optional<Clock::time_point> begun) const;
    // It has been resumed, and the thread has not made it yet.
    [[nodiscard]] bool is_about_to_begin(const user_regs_struct& regs) const;
    // The thread, with these registers, makes it again; or it ends, if its time is over: true.
    bool resume(pid_t tid, user_regs_struct regs);
    // The end of time, if it waits for ever.
    [[nodiscard]] Clock::time_point ends() const { return ends_; }

private:
    ResumedWait() = default;

    user_regs_struct regs_{};  // as they were when it was interrupted
    std::optional<Clock::time_point> begun_;
    Clock::time_point ends_ = Clock::time_point::max();
    uint64_t sleeps_ = 0;  // of the thread, so far
};

}  // namespace gpr
