// Chaos mode: threads cross at random points, to find bugs in crossings.
#pragma once

#include <cstdint>
#include <random>

namespace gpr {

// One node's sequence of random decisions. The same seed gives the same sequence; the scheduler
// decides which thread takes the next one, so a run can be repeated approximately, not exactly.
class Chaos {
public:
    Chaos(uint64_t seed, uint32_t node) : random_(seed * 0x9e3779b97f4a7c15 + node) {}

    // Whether a thread that makes a system call leaves this node.
    bool leaves_at_call() { return random_() % 4 == 0; }
    // Whether a thread that waits for a page leaves. The probability falls with each such
    // departure: a thread that finds none of its pages here would otherwise be sent on before it
    // gets what it needs, and threads that share much memory would make no progress.
    bool leaves_at_fault() {
        bool leaves = random_() % (8 + left_at_faults_ / 1024) == 0;
        left_at_faults_ += leaves;
        return leaves;
    }
    // Whether a new process begins at an acceptor.
    bool begins_remotely() { return random_() % 2 == 0; }
    // To which of the acceptors 1 to `acceptors` a thread goes that leaves home.
    unsigned acceptor(unsigned acceptors) {
        return acceptors == 1 ? 1 : 1 + static_cast<unsigned>(random_() % acceptors);
    }

private:
    std::mt19937_64 random_;
    uint64_t left_at_faults_ = 0;
};

// Whether a thread may cross in this call. Some calls must end on the node where they began.
bool may_leave_at_call(uint32_t number);

}  // namespace gpr
