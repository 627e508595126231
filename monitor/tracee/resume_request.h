// How a traced thread goes on, whatever resumes it, and whether it is to stop.
#pragma once

#include <sys/types.h>

namespace gpr::trace {

// resume() uses this request for the thread: PTRACE_CONT unless another one is set.
void go_on_by(pid_t tid, int request);
int goes_on_by(pid_t tid);
// resume() with PTRACE_CONT, once.
void resume_past_calls(pid_t tid);
// The stop at the thread's end (PTRACE_EVENT_EXIT) has been reported; and its end. Before that stop
// has been, resume() and its like do nothing there: they are meant for an earlier one, which
// SIGKILL has ended.
void note_end_reported(pid_t tid);
void note_ended(pid_t tid);
// Whether interrupt() has asked for a stop, and none has come yet but at calls.
bool is_stop_wanted(pid_t tid);
void note_interrupted(pid_t tid);
// Detaches the thread, as if it had never been interrupted: now if it has stopped, otherwise when
// it does (Waits).
void detach(pid_t tid);
// For one of those, which has stopped now, by this signal if it is not 0, or ended. False if
// detach() was not called for it.
bool detach_late(pid_t tid, bool ended, int signal);
// PTRACE_O_*, of a thread that has stopped.
void set_options(pid_t tid, long options);

}  // namespace gpr::trace
