// Ends of threads and processes: the program ends them, home ends them, or they are killed here.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "acceptor/worker/part.h"
#include "base/address.h"

namespace gpr {
struct WaitStatus;
}  // namespace gpr

namespace gpr::worker {

class Ends {
public:
    explicit Ends(Worker& worker) : worker_(worker) {}

    Task<void> exit_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> end_process(Frame frame);
    Task<void> end_shadow(Frame frame);
    void on_end(pid_t host_tid, WaitStatus status);
    static Task<void> take_clear_tid(RemoteThread& main, uint64_t at);

private:
    void note_end(RemoteProcess& process, pid_t host_tid, WaitStatus status);
    Task<void> hold_robust_lists(RemoteProcess& process);
    Task<void> let_go_of_devices(RemoteProcess& process);
    Task<void> hold_to_end(RemoteThread& thread, std::vector<Range> words);
    Task<void> clear_tid_of_main(RemoteThread& thread);
    void wake_after_end_of_main(const RemoteThread& thread);
    void bury(RemoteProcess& process);

    Worker& worker_;
};

}  // namespace gpr::worker
