// CPU affinities and memory policies that the program sets for its threads.
#pragma once

#include <cstdint>

#include "acceptor/worker/part.h"
#include "monitor/tracee/cpu_mask.h"
#include "monitor/tracee/memory_policy.h"

namespace gpr::worker {

class Affinity {
public:
    explicit Affinity(Worker& worker) : worker_(worker) {}

    static void choose_cpus(RemoteThread& thread, CpuMask mask);
    Task<void> affinity_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    // sched_getaffinity. False if the thread in question is not here.
    bool answer_here(RemoteProcess& process, RemoteThread& thread, const Notification& n);

    Task<void> policy_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    // For a new thread, in its stub.
    static Task<void> choose_policy(RemoteThread& thread, MemoryPolicy policy);
    // The arguments of a MirroredCall of mbind(2).
    static Task<void> bind_mapping(std::shared_ptr<Fragment> fragment, std::vector<uint64_t> args);

private:
    Task<void> bind_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    RemoteThread* thread_named(RemoteThread& caller, uint64_t name);

    Worker& worker_;
};

}  // namespace gpr::worker
