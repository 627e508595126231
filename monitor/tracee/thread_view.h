// What the kernel says that a thread does now, without stopping it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace gpr {

struct ThreadView {
    char letter = 'X';     // as in /proc/PID/stat
    std::string waits_in;  // a function of the kernel, as in /proc/PID/wchan; empty: it runs
    int32_t call = -1;     // the system call that it is in; -1: none
    uint64_t cpu_ns = 0;
    uint64_t stack_pointer = 0, instruction = 0;  // 0: it runs, so that nobody can say
};

// tid: as this supervisor names it.
ThreadView view_of_thread(pid_t tid);

}  // namespace gpr
