// The kernel threads here, running or shadows: they are born, watched, stopped and resumed.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "acceptor/worker/part.h"

namespace gpr {
struct ThreadContext;
struct WaitStatus;
}  // namespace gpr

namespace gpr::worker {

class Threads {
public:
    explicit Threads(Worker& worker) : worker_(worker) {}

    void watch(RemoteThread& thread);
    void on_birth(pid_t parent);
    Task<Result<RemoteThread*>> make_shadow(RemoteProcess& process, pid_t tid, uint64_t flags,
                                            uint64_t child_tid);
    void could_not_begin(const Error& why);

    // soon: the stop is expected within microseconds.
    Task<WaitStatus> next_stop(RemoteThread& thread, bool soon = false);
    // Stops the thread at the end of its call, so that the call can be given any result or be
    // repeated.
    Task<Result<ThreadContext>> stop_in_call(RemoteThread& thread, uint64_t notification);
    Task<void> set_free(RemoteThread& thread, const ThreadContext& context);
    void go_on(RemoteThread& thread);

private:
    Worker& worker_;
};

}  // namespace gpr::worker
