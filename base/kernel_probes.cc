#include "base/kernel_probes.h"

#include <asm/prctl.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "base/address.h"
#include "base/fd.h"
#include "base/uapi/io_uring.h"
#include "base/uapi/mman.h"
#include "base/uapi/pagemap.h"
#include "base/uapi/ptrace.h"

namespace gpr {
namespace {

constexpr unsigned child_limit_s = 5;

int errno_unless(bool worked) {
    if (worked) return 0;
    return errno != 0 ? errno : EPROTO;
}

int wait_for_verdict(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, __WALL) == -1) {
        if (errno != EINTR) return errno;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : EPROTO;
}

// Runs `inspect(parent)` in a grandchild; its parent allows any process to trace it (Yama).
int probe_as_supervisor(const std::function<int(pid_t)>& inspect) {
    return probe_in_child([&] {
        const pid_t launcher = getpid();
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
        return probe_in_child([&] { return inspect(launcher); });
    });
}

// The first process of a new pid namespace clones a child with a chosen number.
int clone_with_chosen_pid(pid_t wanted) {
    clone_args arguments{};
    arguments.exit_signal = SIGCHLD;
    arguments.set_tid = reinterpret_cast<uint64_t>(&wanted);
    arguments.set_tid_size = 1;
    const auto pid = static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
    if (pid == -1) return errno;
    if (pid == 0) _exit(syscall(SYS_getpid) == wanted ? 0 : EPROTO);
    return wait_for_verdict(pid);
}

}  // namespace

int probe_in_child(const std::function<int()>& experiment) {
    const pid_t child = fork();
    if (child == -1) return errno;
    if (child == 0) {
        signal(SIGALRM, SIG_DFL);
        alarm(child_limit_s);
        _exit(experiment());
    }
    return wait_for_verdict(child);
}

int probe_namespace(int type) {
    return probe_in_child([type] {
        if (unshare(CLONE_NEWUSER) == -1) return errno;
        return errno_unless(type == 0 || unshare(type) == 0);
    });
}

int probe_clone3_set_tid() {
    return probe_in_child([] {
        if (unshare(CLONE_NEWUSER) == -1 || unshare(CLONE_NEWPID) == -1) return errno;
        return probe_in_child([] { return clone_with_chosen_pid(77); });
    });
}

int probe_ptrace_of_launcher() {
    return probe_as_supervisor([](pid_t launcher) {
        return errno_unless(::ptrace(PTRACE_SEIZE, launcher, nullptr, nullptr) == 0);
    });
}

int probe_pidfd_getfd_of_launcher() {
    return probe_as_supervisor([](pid_t launcher) {
        const Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, launcher, 0)));
        if (!pidfd) return errno;
        // EBADF is a success: it means only that the launcher's stdin is closed.
        const Fd copy(static_cast<int>(syscall(SYS_pidfd_getfd, pidfd.get(), STDIN_FILENO, 0)));
        return copy || errno == EBADF ? 0 : errno;
    });
}

int probe_populate_write() {
    void* page =
        mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return errno;
    const int verdict = errno_unless(madvise(page, page_size, MADV_POPULATE_WRITE) == 0);
    munmap(page, page_size);
    return verdict;
}

int probe_pagemap_scan() {
    const Fd pagemap(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
    if (!pagemap) return errno;
    page_region found{};
    pm_scan_arg arguments{};
    arguments.size = sizeof arguments;
    arguments.start = Address{reinterpret_cast<uint64_t>(&found)}.page().value;
    arguments.end = arguments.start + page_size;
    arguments.vec = reinterpret_cast<uint64_t>(&found);
    arguments.vec_len = 1;
    arguments.category_anyof_mask = PAGE_IS_PRESENT;
    arguments.return_mask = PAGE_IS_PRESENT;
    return errno_unless(ioctl(pagemap.get(), PAGEMAP_SCAN, &arguments) >= 0);
}

int probe_io_uring() {
    io_uring_params parameters{};
    const Fd ring(static_cast<int>(syscall(SYS_io_uring_setup, 4, &parameters)));
    return errno_unless(static_cast<bool>(ring));
}

int probe_io_uring_futex() {
    io_uring_params parameters{};
    const Fd ring(static_cast<int>(syscall(SYS_io_uring_setup, 4, &parameters)));
    // The answer, an io_uring_probe, which ends with these.
    constexpr size_t operations = io_uring_futex_wait + 1;
    constexpr size_t head_size = sizeof(io_uring_probe);
    alignas(io_uring_probe) std::array<char, head_size + operations * sizeof(io_uring_probe_op)>
        known{};
    if (syscall(SYS_io_uring_register, ring.get(), IORING_REGISTER_PROBE, known.data(),
                operations) == -1) {
        return errno;
    }
    io_uring_probe_op futex_wait{};
    std::memcpy(&futex_wait, known.data() + head_size + io_uring_futex_wait * sizeof futex_wait,
                sizeof futex_wait);
    const bool has = (futex_wait.flags & IO_URING_OP_SUPPORTED) != 0;
    return has ? 0 : EOPNOTSUPP;
}

int probe_fsgsbase() {
    constexpr unsigned long hwcap2_fsgsbase = 1UL << 1;
    return (getauxval(AT_HWCAP2) & hwcap2_fsgsbase) != 0 ? 0 : ENODEV;
}

int probe_cpuid_faulting() {
    return probe_in_child(
        [] { return errno_unless(syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0) == 0); });
}

int probe_bpf_tracing() {
    if (access("/sys/kernel/btf/vmlinux", R_OK) == -1) return errno;
    // r0 = 0; exit
    const bpf_insn program[] = {{BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0},
                                {BPF_JMP | BPF_EXIT, 0, 0, 0, 0}};
    bpf_attr load{};
    load.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
    load.insns = reinterpret_cast<uint64_t>(program);
    load.insn_cnt = 2;
    load.license = reinterpret_cast<uint64_t>("GPL");
    const Fd loaded(static_cast<int>(syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof load)));
    if (!loaded) return errno;
    bpf_attr attach{};
    attach.raw_tracepoint.name = reinterpret_cast<uint64_t>("sys_enter");
    attach.raw_tracepoint.prog_fd = static_cast<uint32_t>(loaded.get());
    const Fd attached(
        static_cast<int>(syscall(SYS_bpf, BPF_RAW_TRACEPOINT_OPEN, &attach, sizeof attach)));
    return errno_unless(static_cast<bool>(attached));
}

}  // namespace gpr
