// The end of a process whose threads are here, at once.
#pragma once

#include <csignal>

#include "acceptor/worker/remote_process.h"

namespace gpr {

// With all its threads. The puncher is no thread of it.
inline void end_now(const RemoteProcess& process) {
    if (process.host_pid > 0) kill(process.host_pid, SIGKILL);
    if (process.puncher_host_tid > 0) kill(process.puncher_host_tid, SIGKILL);
}

}  // namespace gpr
