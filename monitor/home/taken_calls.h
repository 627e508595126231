// Calls of threads at home that are made in their stubs. There nothing comes between the call and
// what gpr does about it, and no signal can make the thread repeat it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "monitor/home/part.h"
#include "monitor/tracee/context_raw.h"

namespace gpr::home {

// The call of a thread that is now in its stub.
struct TakenCall {
    ThreadContext context;
    std::shared_ptr<StubThread> stub;  // of the image that made the call; dead after exec
};

class TakenCalls {
public:
    explicit TakenCalls(Home& home) : home_(home) {}

    Task<std::optional<TakenCall>> take_call(HomeThread& thread);
    static Task<int64_t> make_call(const TakenCall& taken, const Notification& n);
    Task<void> return_from(HomeThread& thread, TakenCall taken, int64_t result);

private:
    Home& home_;
};

}  // namespace gpr::home
