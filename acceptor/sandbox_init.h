// PID 1 of a session's pid namespace. Of no interest outside sandbox.cc.
#pragma once

#include "acceptor/sandbox.h"

namespace gpr {

// The root of a box's processes. It is not that of the mount namespace which init makes: who lives
// in a chroot may not make a user namespace (clone(2), EPERM), in which a program would have all
// capabilities.
inline constexpr const char* box_root = "/root";

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
