// The process that builds a session's box, and PID 1 of its pid namespace. Used by sandbox.cc only.
#pragma once

#include <sched.h>

#include "acceptor/box/sandbox.h"

namespace gpr {

// The root directory of a box's processes. It differs from the root of the mount namespace, because
// a process in a chroot may not create a user namespace (clone(2), EPERM), in which a program would
// have all capabilities.
inline constexpr const char* box_root = "/root";

// The builder's own namespaces. They belong to the host's user namespace, whatever the box's own
// one allows.
inline constexpr uint64_t namespaces_of_worker = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;

// One write to the report pipe: first the builder's, then init's.
struct InitReport {
    int error = 0;
    bool has_time_namespace = false;
    int init_pid = 0;  // in the worker's pid namespace
    int limit_of_ids = 0;
    char failed_step[48] = {};
};

// Runs in a new process with the namespaces above: removes the host's content from them, starts
// init as a child of the worker, and exits. Init waits for a byte on `alive`, sent when its user is
// mapped. Then it reaps orphans until the last writer of `alive` is gone.
[[noreturn]] void build_sandbox(const SandboxOptions& options, int alive, int report);

}  // namespace gpr
