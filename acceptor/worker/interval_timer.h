// An interval timer that counts CPU time: setitimer(2).
#pragma once

#include <sys/time.h>

#include <cstdint>

namespace gpr::worker {

struct IntervalTimer {
    uint64_t kind = 0;  // ITIMER_VIRTUAL or ITIMER_PROF
    itimerval setting{};
};

}  // namespace gpr::worker
