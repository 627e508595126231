// PID 1 of a session's pid namespace. Of no interest outside sandbox.cc.
#pragma once

#include "acceptor/sandbox.h"

namespace gpr {

// One write to the report pipe says how it went.
struct InitReport {
    int error = 0;
    bool has_time_namespace = false;
    int limit_of_ids = 0;
    char failed_step[48] = {};
};

// In a new process with new pid, mount, net, ipc and uts namespaces. Empties them of the host, then
// reaps orphans until the last writer of `alive` is gone.
[[noreturn]] void run_sandbox_init(const SandboxOptions& options, int alive, int report);

}  // namespace gpr
