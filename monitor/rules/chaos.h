// Chaos: threads cross where nothing asks for it, to find what does not survive a crossing.
#pragma once

#include <cstdint>
#include <random>

namespace gpr {

// One node's stream of decisions. The same seed gives the same stream; which thread draws next is
// the scheduler's doing, so a run is repeated in kind, not to the instruction.
class Chaos {
public:
    Chaos(uint64_t seed, uint32_t node) : random_(seed * 0x9e3779b97f4a7c15 + node) {}

    // A thread makes a system call, or stands at a missing page. True: it is to leave.
    bool leaves_at_call() { return random_() % 4 == 0; }
    // The rarer, the oftener it was so: a thread that finds none of its pages where it has come to
    // would be sent on before it has got what it works on, and threads that share much would not
    // get anywhere.
    bool leaves_at_fault() {
        bool leaves = random_() % (8 + left_at_faults_ / 1024) == 0;
        left_at_faults_ += leaves;
        return leaves;
    }
    // Where a new process begins. True: at an acceptor.
    bool begins_remotely() { return random_() % 2 == 0; }
    // One of so many acceptors, where a thread that leaves home goes.
    unsigned acceptor(unsigned acceptors) {
        return acceptors == 1 ? 1 : 1 + static_cast<unsigned>(random_() % acceptors);
    }

private:
    std::mt19937_64 random_;
    uint64_t left_at_faults_ = 0;
};

// Calls that a thread must end where it began them.
bool may_leave_at_call(uint32_t number);

}  // namespace gpr
