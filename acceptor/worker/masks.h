// Signal masks of threads here: calls that change them, and calls that wait with a temporary one.
#pragma once

#include <cstdint>
#include <optional>

#include "acceptor/worker/part.h"

namespace gpr {
struct HandledSignal;
}  // namespace gpr

namespace gpr::worker {

class Masks {
public:
    explicit Masks(Worker& worker) : worker_(worker) {}

    Task<void> mask_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> handler_return(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> suspend_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<uint64_t> mask_of_call(RemoteProcess& process, Notification n);
    Task<void> end_under_mask(RemoteProcess& process, RemoteThread& thread, Notification n,
                              uint64_t mask, HandledSignal signal);
    void return_borrowed(RemoteThread& thread);

private:
    // The thread's mask after this rt_sigprocmask.
    Task<std::optional<uint64_t>> mask_after(RemoteProcess& process, const RemoteThread& thread,
                                             Notification n);
    Task<bool> change_mask(RemoteProcess& process, RemoteThread& thread, Notification n,
                           Notification change);
    void deliver_borrowed(RemoteThread& thread);

    Worker& worker_;
};

}  // namespace gpr::worker
