// How a traced thread goes on, whatever resumes it, and whether it is to stop.
#pragma once

#include <sys/types.h>

namespace gpr::trace {

// resume() uses this request for the thread: PTRACE_CONT unless another one is set.
void go_on_by(pid_t tid, int request);
int goes_on_by(pid_t tid);
// Whether interrupt() has asked for a stop, and none has come yet but at calls.
bool is_stop_wanted(pid_t tid);
void note_interrupted(pid_t tid);
// PTRACE_O_*, of a thread that has stopped.
void set_options(pid_t tid, long options);

}  // namespace gpr::trace
