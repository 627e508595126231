// An interval timer that counts CPU time: setitimer(2).
#pragma once

#include <sys/time.h>

#include <cstdint>

namespace gpr {

struct IntervalTimer {
    uint64_t kind = 0;  // ITIMER_VIRTUAL or ITIMER_PROF
    itimerval setting{};

    [[nodiscard]] bool armed() const {
        return setting.it_value.tv_sec != 0 || setting.it_value.tv_usec != 0;
    }
};

}  // namespace gpr
