// Threads and processes that the program creates: clone(2) in all its forms.
#pragma once

#include <sys/types.h>

#include <vector>

#include "acceptor/worker/part.h"

namespace gpr {
struct CloneRequest;
struct ThreadContext;
}  // namespace gpr

namespace gpr::worker {

class Clones {
public:
    explicit Clones(Worker& worker) : worker_(worker) {}

    Task<void> clone_call(RemoteProcess& process, RemoteThread& thread, Notification n);

private:
    Task<int> read_clone_args(RemoteProcess& process, Notification n, CloneRequest& request,
                              std::vector<pid_t>& set_tid);
    Task<bool> outlives(pid_t pid, pid_t caller, pid_t child);
    Task<Result<void>> begin_thread(RemoteThread& parent, pid_t tid, const CloneRequest& request,
                                    ThreadContext context);

    Worker& worker_;
};

}  // namespace gpr::worker
