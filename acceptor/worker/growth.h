// Faults of threads here that are not what the kernel takes them for: below mappings that grow
// downwards, and beyond the end of a file.
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

    // True: the signal was a touch right below a mapping that grows, and is dealt with.
    bool mends_fault(RemoteProcess& process, RemoteThread& thread, const siginfo_t& info);
    // That the kernel here has been told of an action, or is about to be.
    static void note_action(RemoteProcess& process, const SignalAction& action);
    // Its handler has begun.
    static void note_handled(RemoteProcess& process, int signal);

private:
    Task<void> repair_signal(pid_t pid, pid_t tid, int signal);
    Task<void> grow_down(RemoteProcess& process, RemoteThread& thread, siginfo_t info);
    Task<void> bus_error(pid_t pid, pid_t tid, siginfo_t info);

    Worker& worker_;
};

}  // namespace gpr::worker
