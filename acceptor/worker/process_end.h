// Kills a process here at once.
#pragma once

#include <csignal>

#include "acceptor/worker/remote_process.h"

namespace gpr {

// All its threads, and the puncher, which is not one of them.
inline void end_now(const RemoteProcess& process) {
    if (process.host_pid > 0) kill(process.host_pid, SIGKILL);
    if (process.puncher_host_tid > 0) kill(process.puncher_host_tid, SIGKILL);
}

}  // namespace gpr
