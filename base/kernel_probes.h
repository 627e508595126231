// The experiments behind KernelFeatures. Each returns 0, or the errno with which the kernel
// refused.
#pragma once

#include <functional>

namespace gpr {

// Runs the experiment in a child, so that the changes it makes end with the child. EPROTO: the
// child was killed or ran out of time.
int probe_in_child(const std::function<int()>& experiment);

// Tries it in a new user namespace, as when the acceptor's empty process is made. `type` is one
// CLONE_NEW* flag; 0 tries the user namespace alone.
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
int probe_io_uring_futex();
int probe_fsgsbase();
int probe_cpuid_faulting();
int probe_bpf_tracing();

}  // namespace gpr
