// What a process has used of the CPU so far, its ended threads included.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace gpr {

struct CpuTime {
    uint64_t total_ns = 0;  // exact
    uint64_t user_ns = 0;   // the user part, in the kernel's ticks (10 ms)
};

// Zero where the process is gone. pid: as this supervisor names it.
CpuTime cpu_time_of(pid_t pid);

}  // namespace gpr
