// Programs of the session that trace others with ptrace(2). The kernel's tracer of all of them is
// the monitor, since a thread has one; it shows the tracer the stops that are for it, and resumes
// the tracee when the tracer does. Whoever traces or is traced stays at home, so that every stop,
// register and signal is the kernel's own. docs/decisions/0054-ptrace-inside.md
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <map>
#include <vector>

#include "monitor/home/part.h"
#include "monitor/home/trace_calls.h"
#include "monitor/home/trace_waits.h"
#include "monitor/ptrace/tracee.h"
#include "monitor/tracee/waits.h"

namespace gpr::home {

class Tracing {
public:
    explicit Tracing(Home& home) : calls(home), waits(home), home_(home) {}

    TraceCalls calls;
    TraceWaits waits;

    // nullptr: nobody in the session traces it.
    [[nodiscard]] ptrace::Tracee* find(pid_t tid);
    [[nodiscard]] std::vector<ptrace::Tracee*> tracees_of(pid_t process);
    // It traces, or is traced.
    [[nodiscard]] bool concerns(pid_t process) const;
    [[nodiscard]] bool traces(pid_t process) const;
    // The thread that made this process, or 0.
    [[nodiscard]] pid_t maker_of(pid_t process) const;

    // Begins to trace the thread. Both processes stay at home from now on.
    ptrace::Tracee& begin(HomeThread& tracer, HomeThread& tracee);
    // The tracee goes on, by this request.
    void resume(ptrace::Tracee& tracee, int request, int signal);
    // Its tracer does not trace it any more.
    void release(pid_t tid, int signal);
    // The tracer has waited for its end.
    void reap(pid_t tid);

    // Whether the stop is the tracer's affair, and has been handled.
    bool takes_stop(HomeThread& thread, WaitStatus status);
    // A stop by a filter of the program's own.
    bool takes_filter_stop(HomeThread& thread);
    // A signal that we have sent to a tracer gets the look of the kernel's.
    static void restore_signal(const HomeThread& thread, int signal);
    // Before the newborn's record is made; and when it has been.
    void on_birth(const HomeThread& parent, pid_t tid, int event);
    bool takes_birth(const HomeThread& parent, int event);
    // The thread has executed a program, which stays at home, and is in that stop.
    void on_exec(const HomeThread& thread);
    void leave_exec(HomeThread& thread);
    // Whether the thread, which is about to end, waits until its tracer knows.
    bool holds_end(const HomeThread& thread, int status);
    void on_end(pid_t tid, pid_t process, WaitStatus status);

    // Until it executes another program.
    static void keep_home(HomeProcess& process);

private:
    void tell(ptrace::Tracee& tracee, int status);
    void send_signal(const ptrace::Tracee& tracee);
    void send_to_itself(const ptrace::Tracee& tracee, int signal,
                        ptrace::Tracee::Expected expected);
    bool takes_signal(HomeThread& thread, ptrace::Tracee& tracee, int signal);
    bool takes_event(ptrace::Tracee& tracee, int event);
    bool takes_trap(HomeThread& thread, ptrace::Tracee& tracee);
    void tell_end_of_leader(pid_t process);
    void on_tracers_end(pid_t tracer);

    Home& home_;
    std::map<pid_t, ptrace::Tracee> tracees_;  // by tid
    std::map<pid_t, pid_t> makers_;            // of processes, by pid: threads
};

}  // namespace gpr::home
