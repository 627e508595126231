// Whether a supervisor may occupy a processor while it waits: not if a thread that it serves could
// use it. A thread waits for the supervisor, which knows of that, or in a call of its own (a futex,
// a poll, ...), of which only its process's CPU-time clock tells.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "transport/loop.h"

namespace gpr {

class RunningThreads {
public:
    struct Counts {
        size_t threads = 0;    // of the program
        size_t helpers = 0;    // of ours, in its processes
        size_t waiting = 0;    // of both, for the supervisor
        size_t processes = 0;  // of the program
    };
    // each_process: calls what it gets with the id of every process, in our pid namespace.
    using EachProcess = std::function<void(const std::function<void(pid_t)>&)>;

    // Whether there are any, as far as one can tell. Ask again soon while the answer is no: how
    // long a process has run tells only if one knows how long it had run a moment before.
    bool any(const Counts& counts, const EachProcess& each_process);

private:
    static constexpr size_t most_processes = 4;  // each clock costs a system call

    Clock::time_point looked_at_;
    uint64_t ran_ns_ = 0;  // all of them together, then
};

}  // namespace gpr
