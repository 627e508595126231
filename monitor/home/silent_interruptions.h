// The kernel interrupts waits of traced threads for signals that their process ignores, which wake
// nobody natively. Where the thread itself then takes the signal, it stops, and its wait goes on.
// But another thread of the process may take it first; then the call ends with EINTR, and only a
// watch in the kernel notices (bpf/interruptions.bpf.h).
//
// In practice the signal is SIGCHLD, so only processes with children and several threads are
// watched.
#pragma once

#include <memory>

#include "bpf/call_watch.h"
#include "monitor/home/part.h"

namespace gpr::home {

class SilentInterruptions {
public:
    explicit SilentInterruptions(Home& home) : home_(home) {}

    // A process has got a child or another thread.
    void on_birth(HomeProcess& parent, bool in_same_process);
    // No thread of a process that is not split is stopped any more: it may be about to lose its
    // tracer.
    void stop();

private:
    Result<> watch(pid_t pid);

    Home& home_;
    // Of a session in which nobody watches futexes; loaded for the first process that needs it.
    std::unique_ptr<CallWatch> watch_;
    bool refused_ = false;  // it cannot be loaded
};

}  // namespace gpr::home
