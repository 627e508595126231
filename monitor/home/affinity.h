// CPU affinities and memory policies that the program sets for its threads. An affinity holds
// wherever the thread runs, as far as that node has the CPUs; the node where the thread is decides
// whether the call succeeds.
#pragma once

#include <cstdint>

#include "monitor/home/part.h"

namespace gpr {
struct MarshalledCall;
}  // namespace gpr

namespace gpr::home {

class Affinity {
public:
    explicit Affinity(Home& home) : home_(home) {}

    void affinity_call(HomeProcess& process, HomeThread& thread, const Notification& n);
    void note_affinity(HomeThread& caller, const MarshalledCall& call);
    // A thread at the acceptor has called set_mempolicy there.
    Task<void> note_policy(Frame frame);
    // Of a process that acceptors have just been told of.
    void tell_mapping_policies(HomeProcess& process);
    static void look_at_newcomer(HomeThread& first);

private:
    HomeThread* thread_named(HomeThread& caller, uint64_t tid);

    Home& home_;
};

}  // namespace gpr::home
