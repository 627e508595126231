// Faults of threads here that are no errors of the program, although the kernel raises a signal:
// below mappings that grow downwards, and at pages of files.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "acceptor/worker/part.h"

namespace gpr {
struct SignalAction;
}  // namespace gpr

namespace gpr::worker {

class Growth {
public:
    explicit Growth(Worker& worker) : worker_(worker) {}

    // True if the signal came from a touch just below a mapping that grows, and is handled.
    bool mends_fault(RemoteProcess& process, RemoteThread& thread, const siginfo_t& info);
    // The kernel here has been told of a disposition, or is about to be.
    static void note_action(RemoteProcess& process, const SignalAction& action);
    // The signal's handler has started.
    static void note_handled(RemoteProcess& process, int signal);

private:
    Task<void> repair_signal(pid_t pid, pid_t tid, int signal);
    Task<void> grow_down(RemoteProcess& process, RemoteThread& thread, siginfo_t info);
    Task<void> bus_error(pid_t pid, pid_t tid, siginfo_t info);

    Worker& worker_;
};

}  // namespace gpr::worker
