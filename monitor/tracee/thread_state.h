// What a thread does, as proc(5) tells it.
#pragma once

#include <sys/types.h>

#include <string>

namespace gpr {

struct ThreadState {
    char letter = 'R';           // as in /proc/PID/stat
    std::string waits_in = "0";  // a function of the kernel, as in /proc/PID/wchan

    bool operator==(const ThreadState&) const = default;
};

// As it would be without a supervisor: a thread that waits for us, for a page or an answer, or that
// we have stopped, runs. tid: as this supervisor names it.
ThreadState thread_state(pid_t tid);
// "R (running)", as in /proc/PID/status.
std::string state_in_words(char letter);

}  // namespace gpr
