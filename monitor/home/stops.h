// Threads that run the program at home are brought to a stop, and into their stubs.
#pragma once

#include <optional>

#include "base/result.h"
#include "monitor/home/part.h"

namespace gpr {
struct ThreadContext;
struct WaitStatus;
}  // namespace gpr

namespace gpr::home {

class Stops {
public:
    explicit Stops(Home& home) : home_(home) {}

    void watch(HomeThread& thread);
    // soon: it is about to stop.
    Task<WaitStatus> next_stop(HomeThread& thread, bool soon = false);
    Task<std::optional<ThreadContext>> stop(HomeThread& thread);
    bool divert(HomeThread& thread, const ThreadContext& context);
    Task<std::optional<ThreadContext>> capture(HomeThread& thread);
    // From its stub to a stop outside, with these registers: perhaps those of a system call that
    // the kernel here goes on with. Without extended state it keeps what it has.
    Task<Result<void>> take_out(HomeThread& thread, const ThreadContext& context);

private:
    Home& home_;
};

}  // namespace gpr::home
