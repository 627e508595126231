// What the running kernel can do for gpr, found by trying each feature once. Versions are never
// compared, because distributions backport features and administrators disable them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpr {

struct Feature {
    std::string_view name;
    std::string_view needed_for;  // for an optional feature: what is better with it
    std::string_view cure;        // what to do if it is missing
    bool required = true;
    bool present = false;
    std::string detail = {};  // a value, or the kernel's reason for refusing

    explicit operator bool() const { return present; }
};

inline constexpr std::string_view cure_newer_kernel = "run Linux 6.8 or newer";
inline constexpr std::string_view cure_setup = "run 'gpr setup' as root";
inline constexpr std::string_view cure_namespaces =
    "allow user namespaces (kernel.unprivileged_userns_clone=1,"
    " kernel.apparmor_restrict_unprivileged_userns=0, user.max_*_namespaces); not in a chroot";

// The limits of setrlimit are no substitute: they apply to one process, or to a user, who is root
// here.
inline constexpr std::string_view cure_cgroup =
    "give the acceptor a cgroup v2 with this controller (not cgroup v1; systemd: Delegate=yes);"
    " process limits (ulimit) cannot do it";

struct KernelFeatures {
    Feature userfaultfd{"userfaultfd", "catching accesses to pages that are elsewhere", cure_setup};
    Feature uffd_missing{"uffd missing pages", "fetching pages on first touch", cure_newer_kernel};
    Feature uffd_wp{"uffd write-protect", "pages with many readers", cure_newer_kernel};
    Feature uffd_wp_unpopulated{"uffd write-protect of holes", "protecting pages never touched",
                                cure_newer_kernel};
    Feature uffd_move{"uffd move", "taking a page away without losing a write", cure_newer_kernel};
    Feature uffd_thread_id{"uffd thread ids", "knowing which thread waits", cure_newer_kernel};
    Feature uffd_event_remap{"uffd remap events", "following mremap", cure_newer_kernel};
    Feature uffd_event_remove{"uffd remove events", "following madvise", cure_newer_kernel};
    Feature uffd_event_unmap{"uffd unmap events", "following munmap", cure_newer_kernel};
    Feature uffd_event_fork{"uffd fork events",
                            "forks seen by the kernel, not only by gpr's filter",
                            "run as root (CAP_SYS_PTRACE)", false};
    Feature uffd_shmem{"uffd on shared memory", "shared mappings across nodes", cure_newer_kernel,
                       false};
    Feature uffd_wp_shmem{"uffd write-protect of shared memory", "shared mappings with readers",
                          cure_newer_kernel, false};
    Feature uffd_wp_async{"uffd asynchronous write-protect", "finding dirty pages cheaply",
                          cure_newer_kernel, false};
    Feature uffd_poison{"uffd poison", "marking pages lost with a peer", cure_newer_kernel, false};
    Feature pagemap_scan{"PAGEMAP_SCAN", "finding dirty pages cheaply", cure_newer_kernel, false};
    Feature populate_write{"MADV_POPULATE_WRITE", "making pages resident before device calls",
                           cure_newer_kernel};

    Feature ptrace{"ptrace of the launching process", "supervising the program",
                   "set kernel.yama.ptrace_scope to 0 or 1, and allow ptrace in the container"};
    Feature pidfd_getfd{"pidfd_getfd", "taking the program's userfaultfd and seccomp listener",
                        "allow pidfd_getfd in the container's seccomp profile"};
    Feature seccomp_notify{"seccomp user notification", "running system calls where they belong",
                           "enable CONFIG_SECCOMP_FILTER, and allow seccomp in the container"};
    Feature seccomp_wait_killable{"seccomp wait-killable", "running no system call twice",
                                  cure_newer_kernel};
    Feature seccomp_addfd{"seccomp addfd", "putting descriptors into the program",
                          cure_newer_kernel};
    Feature seccomp_sync_wake{"seccomp synchronous wake-up", "faster forwarded calls on one CPU",
                              cure_newer_kernel, false};

    Feature user_namespace{"user namespaces", "the acceptor's empty process", cure_namespaces};
    Feature pid_namespace{"pid namespaces", "the same process ids on every node", cure_namespaces};
    Feature time_namespace{"time namespaces", "the same clocks on every node", cure_namespaces};
    Feature uts_namespace{"uts namespaces", "the same host name on every node", cure_namespaces};
    Feature mount_namespace{"mount namespaces", "an acceptor process without files",
                            cure_namespaces};
    Feature network_namespace{"network namespaces", "an acceptor process without a network",
                              cure_namespaces};
    Feature ipc_namespace{"ipc namespaces", "an acceptor process without foreign IPC objects",
                          cure_namespaces};
    Feature clone3_set_tid{"clone3 set_tid", "the same thread ids on every node", cure_namespaces};

    Feature io_uring{"io_uring", "the event loop of a session",
                     "set kernel.io_uring_disabled to 0, and allow io_uring in the container"};
    Feature io_uring_futex{"io_uring futex", "gpr attach", cure_newer_kernel, false};
    Feature open_files{"open file limit", "descriptor numbers shared out among nodes",
                       "raise the hard limit to 4096 or more (ulimit -Hn, /etc/security/limits.d)"};
    Feature fsgsbase{"FSGSBASE", "crossings without arch_prctl",
                     "use a CPU and kernel that have it", false};
    Feature cpuid_faulting{"CPUID faulting", "hiding CPU features a peer lacks",
                           "use a CPU (or hypervisor) that has it", false};
    Feature bpf{"BPF tracing", "futex wakes that stop nobody (else by seccomp)",
                "run as root, or with CAP_BPF and CAP_PERFMON", false};

    Feature cgroup_memory{"cgroup v2 memory", "gpr acceptor --session-memory", cure_cgroup, false};
    Feature cgroup_cpu{"cgroup v2 cpu", "gpr acceptor --session-cpus", cure_cgroup, false};
    Feature cgroup_pids{"cgroup v2 pids", "gpr acceptor --session-pids", cure_cgroup, false};
    Feature cgroup_dmem{"cgroup v2 dmem", "gpr acceptor --session-device-memory",
                        "run Linux 6.14 or newer with CONFIG_CGROUP_DMEM", false};

    // Takes some milliseconds: forks short-lived children that try namespaces, ptrace and seccomp.
    // Does not change this process. Call it before starting threads.
    static KernelFeatures probe();

    [[nodiscard]] std::vector<const Feature*> all() const;
    // Names of the features that are present: what nodes tell each other.
    [[nodiscard]] std::vector<std::string> names() const;
    // The required features that are missing, in the order of all().
    [[nodiscard]] std::vector<const Feature*> lacking() const;
};

}  // namespace gpr
