// Stops all threads of a process here: for a fork, which is a snapshot, or because job control has
// stopped the program at home.
#pragma once

#include "acceptor/worker/debugged.h"
#include "acceptor/worker/part.h"

namespace gpr::worker {

class Standstill {
public:
    explicit Standstill(Worker& worker) : worker_(worker), debugged_(worker) {}

    // Threads that a debugger stops.
    [[nodiscard]] Debugged& debugged() { return debugged_; }

    Task<void> freeze(RemoteProcess& process, RemoteThread* but);
    Task<void> freeze_for_home(Frame frame);
    void thaw(RemoteProcess& process);

    // Home wants all threads of a process back, or no longer does.
    void send_home(const Frame& frame);

    void halt(RemoteProcess& process);
    void let_go_on(RemoteProcess& process);

private:
    Worker& worker_;
    Debugged debugged_;
};

}  // namespace gpr::worker
