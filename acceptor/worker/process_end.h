// Kills a process here at once.
#pragma once

#include <csignal>

#include "acceptor/worker/remote_process.h"

namespace gpr {

// With all its threads. The page mover is no thread of it, and may be the last that was born.
inline void end_now(const RemoteProcess& process) {
    if (process.host_pid > 0) kill(process.host_pid, SIGKILL);
    if (process.page_mover_host_tid > 0) {
        kill(process.page_mover_host_tid, SIGKILL);
    } else {
        for (const auto& [tid, host_tid] : process.host_tids) kill(host_tid, SIGKILL);
    }
}

}  // namespace gpr
