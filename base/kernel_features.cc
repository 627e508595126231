#include "base/kernel_features.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>

#include <cstring>

#include "base/kernel_probes.h"
#include "base/own_cgroup.h"
#include "base/uapi/userfaultfd.h"
#include "base/userfaultfd.h"

namespace gpr {
namespace {

constexpr rlim_t open_files_wanted = 4096;

void settle(Feature& feature, int refusal) {
    feature.present = refusal == 0;
    if (refusal != 0) feature.detail = std::strerror(refusal);
}

void settle_uffd(KernelFeatures& f) {
    const std::pair<Feature*, uint64_t> bits[] = {
        {&f.uffd_missing, 0},
        {&f.uffd_wp, UFFD_FEATURE_PAGEFAULT_FLAG_WP},
        {&f.uffd_wp_unpopulated, UFFD_FEATURE_WP_UNPOPULATED},
        {&f.uffd_move, UFFD_FEATURE_MOVE},
        {&f.uffd_thread_id, UFFD_FEATURE_THREAD_ID},
        {&f.uffd_event_remap, UFFD_FEATURE_EVENT_REMAP},
        {&f.uffd_event_remove, UFFD_FEATURE_EVENT_REMOVE},
        {&f.uffd_event_unmap, UFFD_FEATURE_EVENT_UNMAP},
        {&f.uffd_event_fork, UFFD_FEATURE_EVENT_FORK},
        {&f.uffd_shmem, UFFD_FEATURE_MISSING_SHMEM},
        {&f.uffd_wp_shmem, UFFD_FEATURE_WP_HUGETLBFS_SHMEM},
        {&f.uffd_wp_async, UFFD_FEATURE_WP_ASYNC},
        {&f.uffd_poison, UFFD_FEATURE_POISON},
    };
    for (const auto& [feature, bit] : bits) {
        // A new one for each feature: a userfaultfd accepts UFFDIO_API once, and the request may be
        // refused.
        auto uffd = open_userfaultfd(O_CLOEXEC);
        if (feature == bits[0].first) settle(f.userfaultfd, uffd ? 0 : uffd.error().code);
        auto enabled = uffd ? enable_userfaultfd(*uffd, bit) : fail(uffd.error().code, "");
        settle(*feature, enabled ? 0 : enabled.error().code);
        if (!uffd) feature->cure = f.userfaultfd.cure;
    }
}

void settle_open_files(Feature& feature) {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    feature.present = limit.rlim_max >= open_files_wanted;
    feature.detail = std::to_string(limit.rlim_max);
}

}  // namespace

KernelFeatures KernelFeatures::probe() {
    KernelFeatures f;
    settle_uffd(f);
    settle(f.pagemap_scan, probe_pagemap_scan());
    settle(f.populate_write, probe_populate_write());
    settle(f.ptrace, probe_ptrace_of_launcher());
    settle(f.pidfd_getfd, probe_pidfd_getfd_of_launcher());
    settle(f.seccomp_notify, probe_seccomp_notify());
    settle(f.seccomp_wait_killable, probe_seccomp_wait_killable());
    settle(f.seccomp_addfd, probe_seccomp_addfd());
    settle(f.seccomp_sync_wake, probe_seccomp_sync_wake());
    settle(f.user_namespace, probe_namespace(0));
    settle(f.pid_namespace, probe_namespace(CLONE_NEWPID));
    settle(f.time_namespace, probe_namespace(CLONE_NEWTIME));
    settle(f.uts_namespace, probe_namespace(CLONE_NEWUTS));
    settle(f.mount_namespace, probe_namespace(CLONE_NEWNS));
    settle(f.network_namespace, probe_namespace(CLONE_NEWNET));
    settle(f.ipc_namespace, probe_namespace(CLONE_NEWIPC));
    settle(f.clone3_set_tid, probe_clone3_set_tid());
    settle(f.io_uring, probe_io_uring());
    settle(f.io_uring_futex, probe_io_uring_futex());
    settle_open_files(f.open_files);
    settle(f.fsgsbase, probe_fsgsbase());
    settle(f.cpuid_faulting, probe_cpuid_faulting());
    settle(f.bpf, probe_bpf_tracing());
    settle(f.cgroup_memory, probe_cgroup_controller("memory"));
    settle(f.cgroup_cpu, probe_cgroup_controller("cpu"));
    settle(f.cgroup_pids, probe_cgroup_controller("pids"));
    settle(f.cgroup_dmem, probe_cgroup_controller("dmem"));
    return f;
}

std::vector<const Feature*> KernelFeatures::all() const {
    return {&userfaultfd,      &uffd_missing,      &uffd_wp,          &uffd_wp_unpopulated,
            &uffd_move,        &uffd_thread_id,    &uffd_event_remap, &uffd_event_remove,
            &uffd_event_unmap, &uffd_event_fork,   &uffd_shmem,       &uffd_wp_shmem,
            &uffd_wp_async,    &uffd_poison,       &pagemap_scan,     &populate_write,
            &ptrace,           &pidfd_getfd,       &seccomp_notify,   &seccomp_wait_killable,
            &seccomp_addfd,    &seccomp_sync_wake, &user_namespace,   &pid_namespace,
            &time_namespace,   &uts_namespace,     &mount_namespace,  &network_namespace,
            &ipc_namespace,    &clone3_set_tid,    &io_uring,         &io_uring_futex,
            &open_files,       &fsgsbase,          &cpuid_faulting,   &bpf,
            &cgroup_memory,    &cgroup_cpu,        &cgroup_pids,      &cgroup_dmem};
}

std::vector<std::string> KernelFeatures::names() const {
    std::vector<std::string> names;
    for (const Feature* feature : all()) {
        if (feature->present) names.emplace_back(feature->name);
    }
    return names;
}

std::vector<const Feature*> KernelFeatures::lacking() const {
    std::vector<const Feature*> missing;
    for (const Feature* feature : all()) {
        if (feature->required && !feature->present) missing.push_back(feature);
    }
    return missing;
}

}  // namespace gpr
