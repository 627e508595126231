// Who builds a session's box, and PID 1 of its pid namespace. Of no interest outside sandbox.cc.
#pragma once

#include <sched.h>

#include "acceptor/box/sandbox.h"

namespace gpr {

// The root of a box's processes. It is not that of the mount namespace which init makes: who lives
// in a chroot may not make a user namespace (clone(2), EPERM), in which a program would have all
// capabilities.
inline constexpr const char* box_root = "/root";

// What the builder has of its own. These namespaces belong to the host, whatever a user namespace
// allows in the box.
inline constexpr uint64_t namespaces_of_worker = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;

// One write to the report pipe says how it went: one of the builder, then one of init.
struct InitReport {
    int error = 0;
    bool has_time_namespace = false;
    int init_pid = 0;  // in the worker's pid namespace
    int limit_of_ids = 0;
    char failed_step[48] = {};
};

// In a new process with the namespaces above. Empties them of the host, starts init as a child of
// the worker, and ends. Init waits for a byte on `alive`: its user is mapped. Then it reaps orphans
// until the last writer of `alive` is gone.
[[noreturn]] void build_sandbox(const SandboxOptions& options, int alive, int report);

}  // namespace gpr
