// How a thread goes on that a program of the session traces, whatever resumes it.
#pragma once

#include <sys/types.h>

namespace gpr::trace {

// resume() uses this request for the thread: PTRACE_CONT unless another one is set.
void go_on_by(pid_t tid, int request);
int goes_on_by(pid_t tid);
// PTRACE_O_*, of a thread that has stopped.
void set_options(pid_t tid, long options);

}  // namespace gpr::trace
