// What the kernel reports about a thread at this moment, without stopping it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace gpr {

struct ThreadView {
    char letter = 'X';     // as in /proc/PID/stat
    std::string waits_in;  // kernel function, as in /proc/PID/wchan; empty: it runs
    int32_t call = -1;     // system call in progress; -1: none
    uint64_t cpu_ns = 0;
    uint64_t stack_pointer = 0, instruction = 0;  // 0: unknown, because it runs
};

// tid: as this supervisor sees it.
ThreadView view_of_thread(pid_t tid);

}  // namespace gpr
