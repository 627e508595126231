// Processors that the program chooses for its threads, and where their memory is to be. The first
// hold wherever the thread runs, as far as that node has them; whether the call succeeds, the node
// says where the thread is.
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
    // set_mempolicy: a thread at the acceptor has made it there.
    Task<void> note_policy(Frame frame);
    static void look_at_newcomer(HomeThread& first);

private:
    HomeThread* thread_named(HomeThread& caller, uint64_t tid);

    Home& home_;
};

}  // namespace gpr::home
