// Threads that run the program at home are brought to a stop, and into their stubs.
#pragma once

#include <optional>

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

private:
    Home& home_;
};

}  // namespace gpr::home
