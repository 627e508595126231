// Processors that the program chooses for its threads.
#pragma once

#include <cstdint>

#include "acceptor/worker/part.h"
#include "monitor/tracee/cpu_mask.h"

namespace gpr::worker {

class Affinity {
public:
    explicit Affinity(Worker& worker) : worker_(worker) {}

    static void choose_cpus(RemoteThread& thread, CpuMask mask);
    Task<void> affinity_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    // sched_getaffinity. False: the thread that it asks about is not here.
    bool answer_here(RemoteProcess& process, RemoteThread& thread, const Notification& n);

private:
    RemoteThread* thread_named(RemoteThread& caller, uint64_t name);

    Worker& worker_;
};

}  // namespace gpr::worker
