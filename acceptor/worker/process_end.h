// Kills a process here at once.
#pragma once

#include <csignal>

#include "acceptor/worker/remote_process.h"

namespace gpr {

// Kills all its threads, and its page mover, which is not one of them. As long as it is unknown
// which task is the page mover, every task is killed.
inline void end_now(const RemoteProcess& process) {
    if (process.host_pid > 0) kill(process.host_pid, SIGKILL);
    if (process.page_mover_host_tid > 0) {
        kill(process.page_mover_host_tid, SIGKILL);
    } else {
        for (const auto& [tid, host_tid] : process.host_tids) kill(host_tid, SIGKILL);
    }
}

}  // namespace gpr
