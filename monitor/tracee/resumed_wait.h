// An ignored signal normally interrupts nothing. But it stops a traced thread, and after a stop
// some system calls are not restarted but end with EINTR (signal(7), "Interruption of system
// calls"). Such calls are made again here, and keep their original deadline.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <chrono>
#include <cstdint>
#include <optional>

#include "transport/loop.h"

namespace gpr {

// Whether the stopped thread's call is one of those and has just ended with EINTR.
bool is_interrupted_wait(const user_regs_struct& regs);
// Lets the call end with EINTR whatever happens next, as after a job-control stop.
void let_wait_end(pid_t tid);
// Restarts the call with its whole timeout, as if there had been no stop.
void make_wait_again(pid_t tid);

// The timeout of a call that the kernel continues with the rest of its time (restart_syscall).
struct TimeLimit {
    unsigned argument;  // holds milliseconds or the address of a timespec
    bool in_memory;
    std::chrono::nanoseconds length;
};
// regs: at the call. nullopt if it has none, or one that tells a point in time.
std::optional<TimeLimit> limit_of_restarted(pid_t pid, const user_regs_struct& regs);

// What a call that was made again says natively, when its result is this: that its object is gone
// is news while it waits, and EINVAL for a new call.
int64_t result_of_repeated(uint32_t number, int64_t result);

class ResumedWait {
public:
    // For a thread whose call was interrupted. begun: when the call began; if unknown, its timeout
    // counts from now. nullopt if the timeout cannot be determined.
    static std::optional<ResumedWait> begin(pid_t process, pid_t tid, const user_regs_struct& regs,
                                            std::optional<Clock::time_point> begun);

    // Whether this same call is interrupted again, rather than another one like it.
    [[nodiscard]] bool is_interrupted(pid_t tid, const user_regs_struct& regs,
                                      std::optional<Clock::time_point> begun) const;
    // Whether the thread has been resumed but has not made the call again yet.
    [[nodiscard]] bool is_about_to_begin(const user_regs_struct& regs) const;
    // Makes the thread, which has these registers, repeat the call. If the deadline has passed,
    // ends the call instead and returns true.
    bool resume(pid_t tid, user_regs_struct regs);
    // The deadline; time_point::max() if it has none.
    [[nodiscard]] Clock::time_point ends() const { return ends_; }

private:
    ResumedWait() = default;

    user_regs_struct regs_{};  // when it was interrupted
    std::optional<Clock::time_point> begun_;
    Clock::time_point ends_ = Clock::time_point::max();
    int over_ = 0;         // its result at the deadline
    uint64_t sleeps_ = 0;  // how often the thread had slept when it was resumed
};

}  // namespace gpr
