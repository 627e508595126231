// The experiments behind KernelFeatures. Each answers 0, or the errno the kernel refused with.
#pragma once

#include <functional>

namespace gpr {

// Runs the experiment in a child, so that what it changes dies with it. EPROTO: the child was
// killed or ran out of time.
int probe_in_child(const std::function<int()>& experiment);

// In a new user namespace, as the acceptor's empty process is made. `type` is one CLONE_NEW*;
// 0 asks for the user namespace alone.
int probe_namespace(int type);
int probe_clone3_set_tid();

// A grandchild supervises the process that launched it, as the monitor does.
int probe_ptrace_of_launcher();
int probe_pidfd_getfd_of_launcher();

int probe_seccomp_notify();
int probe_seccomp_wait_killable();
int probe_seccomp_addfd();
int probe_seccomp_sync_wake();

int probe_populate_write();
int probe_pagemap_scan();
int probe_io_uring();
int probe_fsgsbase();
int probe_cpuid_faulting();
int probe_bpf_tracing();

}  // namespace gpr
