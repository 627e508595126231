// Stops threads that run the program at home, and takes them into their stubs.
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
    // soon: the stop is expected within microseconds.
    Task<WaitStatus> next_stop(HomeThread& thread, bool soon = false);
    Task<std::optional<ThreadContext>> stop(HomeThread& thread);
    bool divert(HomeThread& thread, const ThreadContext& context);
    Task<std::optional<ThreadContext>> capture(HomeThread& thread);
    // Makes a thread that is in its stub go on as the program, with these registers.
    Task<void> go_on(HomeThread& thread, const ThreadContext& context);
    // Stops a thread that is parked. False if it has ended or begun a new image, or somebody else
    // waits for its stop.
    Task<bool> stand_still(HomeThread& thread);
    // Takes the thread from its stub to a stop outside of it, with these registers, which may be
    // those of a system call that this kernel continues. If the context has no extended state, the
    // thread keeps its own.
    Task<Result<void>> take_out(HomeThread& thread, const ThreadContext& context);

private:
    Home& home_;
};

}  // namespace gpr::home
