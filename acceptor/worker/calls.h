// System calls of threads that run here: each is passed to the part that handles it. Calls that
// home makes are in forwarding.h.
#pragma once

#include <cstdint>

#include "acceptor/worker/part.h"

namespace gpr::worker {

class Calls {
public:
    explicit Calls(Worker& worker) : worker_(worker) {}

    Task<void> handle_call(RemoteProcess& process, RemoteThread& thread, Notification n);

private:
    Task<bool> may_change(RemoteProcess& process, Notification n);
    Task<void> make_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> make_other_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    // For a call that closes the descriptor `number`, or gives the number to another file.
    Task<void> reuse_call(RemoteProcess& process, RemoteThread& thread, Notification n,
                          uint64_t number);
    Task<void> restart_call(RemoteProcess& process, RemoteThread& thread, Notification n);

    Worker& worker_;
};

}  // namespace gpr::worker
