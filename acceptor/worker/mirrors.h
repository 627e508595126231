// State of a thread or process that both kernels must have: calls that set it are made on one node
// and repeated on the other.
#pragma once

#include "acceptor/worker/part.h"

namespace gpr {
struct CpuModes;
struct ThreadContext;
}  // namespace gpr

namespace gpr::worker {

class Mirrors {
public:
    explicit Mirrors(Worker& worker) : worker_(worker) {}

    Task<void> mirror(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> action_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> tid_address_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    void alt_stack_call(RemoteProcess& process, RemoteThread& thread, const Notification& n);
    // False if the call is not of this kind.
    Task<bool> prctl_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> arch_prctl_call(RemoteProcess& process, RemoteThread& thread, Notification n);

    static Task<void> set_cpu_modes(RemoteThread& thread, CpuModes modes);
    Task<void> mirror_alt_stack(RemoteProcess& process, RemoteThread& thread,
                                const ThreadContext& context);
    Task<void> set_action(Frame frame);
    Task<void> make_mirrored(Frame frame);

private:
    Task<void> look_when_done(pid_t pid, pid_t host_tid);
    Task<void> permission_call(RemoteProcess& process, RemoteThread& thread, Notification n);

    Worker& worker_;
};

}  // namespace gpr::worker
