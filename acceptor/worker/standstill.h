// Stops all threads of a process here: for a fork, which is a snapshot, or because job control has
// stopped the program at home.
#pragma once

#include "acceptor/worker/part.h"

namespace gpr::worker {

class Standstill {
public:
    explicit Standstill(Worker& worker) : worker_(worker) {}

    Task<void> freeze(RemoteProcess& process, RemoteThread* but);
    Task<void> freeze_for_home(Frame frame);
    void thaw(RemoteProcess& process);

    // Home wants all threads of a process back, or no longer does.
    void recall(const Frame& frame);

    void halt(RemoteProcess& process);
    void let_go_on(RemoteProcess& process);

private:
    Worker& worker_;
};

}  // namespace gpr::worker
