// Waits for descriptors of both nodes. The thread's shadow waits at home for those of home, and we
// watch those that are here; the first that is ready ends both waits.
#pragma once

#include <cstdint>
#include <memory>

#include "acceptor/worker/part.h"

namespace gpr::worker {

class WaitHere;

class Polls {
public:
    explicit Polls(Worker& worker) : worker_(worker) {}

    Task<void> wait_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<int64_t> ask_both(RemoteProcess& process, RemoteThread& thread, Notification n,
                           WaitHere& here);

private:
    Task<int64_t> wait_for_both(RemoteProcess& process, RemoteThread& thread, Notification n,
                                WaitHere& here);
    Task<std::unique_ptr<WaitHere>> wait_here(RemoteProcess& process, Notification n,
                                              bool& all_ours);

    Worker& worker_;
};

}  // namespace gpr::worker
