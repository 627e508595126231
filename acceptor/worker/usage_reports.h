// What a process has used here: for its own calls, and for home, which adds its part.
#pragma once

#include <sys/types.h>

#include "acceptor/worker/part.h"

namespace gpr {
struct Usage;
struct UsageCall;
}  // namespace gpr

namespace gpr::worker {

class UsageReports {
public:
    explicit UsageReports(Worker& worker) : worker_(worker) {}

    Task<void> add_used_here(RemoteProcess& process, pid_t tid, Notification n);
    Task<void> answer_usage(Frame frame);

private:
    Task<Usage> usage_of(RemoteProcess& process);
    Task<Usage> used_here(RemoteProcess& caller, pid_t tid, UsageCall call);

    Worker& worker_;
};

}  // namespace gpr::worker
