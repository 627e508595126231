// What a thread does, in the terms of proc(5).
#pragma once

#include <sys/types.h>

#include <string>

namespace gpr {

struct ThreadState {
    char letter = 'R';           // as in /proc/PID/stat
    std::string waits_in = "0";  // kernel function, as in /proc/PID/wchan

    bool operator==(const ThreadState&) const = default;
};

// As it would be without gpr: a thread that waits for a page or an answer of ours, or that we have
// stopped, counts as running. tid: as this supervisor sees it.
ThreadState thread_state(pid_t tid);
// "R (running)", as in /proc/PID/status.
std::string state_in_words(char letter);

}  // namespace gpr
