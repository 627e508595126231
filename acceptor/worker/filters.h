// The program's seccomp filters at an acceptor. The executor has those that all threads have, so
// that threads born from it have them, too. Filters of a single thread are installed for it alone.
#pragma once

#include <signal.h>

#include "acceptor/worker/part.h"
#include "monitor/node/program_filter.h"

namespace gpr::worker {

class Filters {
public:
    explicit Filters(Worker& worker) : worker_(worker) {}

    Task<void> filter_call(RemoteProcess& process, RemoteThread& thread, Notification n);
    Task<void> set_filters(Frame frame);
    Task<void> install_for_all(RemoteProcess& process, FilterList filters);
    Task<void> install_for_one(RemoteThread& thread, FilterList filters);
    bool dies_by_filter(RemoteThread& thread, const siginfo_t& info);

private:
    Task<bool> await_ends(pid_t pid);
    Task<void> share_filters(RemoteThread& caller, ProgramFilter filter);

    Worker& worker_;
};

}  // namespace gpr::worker
