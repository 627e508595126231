// The order matters throughout: namespaces are joined while there are capabilities, descriptors are
// closed when nothing needs them any more, and the filter comes last, because after it only the
// stub may make system calls.
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/rseq.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "acceptor/box/empty_process_bootstrap.h"
#include "acceptor/box/privileges.h"
#include "acceptor/box/sandbox_init.h"
#include "base/uapi/seccomp.h"
#include "base/userfaultfd.h"

namespace gpr {
namespace {

constexpr size_t robust_list_head_size = 24;
constexpr unsigned rseq_registered_size = 32;  // what glibc registers, whatever __rseq_size says
constexpr int arch_shstk_disable = 0x5002;     // <asm/prctl.h> of Linux 6.6
constexpr unsigned arch_shstk_shstk = 1;
// Where descriptors are kept while the low numbers are cleared.
constexpr int parking_fds_begin = 200;
constexpr uint64_t spare_tasks = 256;
constexpr int oom_distance = 500;
constexpr auto bootstrap_deadline = std::chrono::seconds(10);

void wake(BootstrapReport& report) {
    syscall(SYS_futex, &report.state, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

[[noreturn]] void give_up(BootstrapReport& report, const char* step, int error) {
    report.failed_step = step;
    report.error = error;
    report.state.store(BootstrapState::failed, std::memory_order_release);
    wake(report);
    _exit(1);
}

class Bootstrapper {
public:
    explicit Bootstrapper(const Bootstrap& bootstrap)
        : bootstrap_(bootstrap), options_(bootstrap.options), report_(bootstrap.report) {}

    [[noreturn]] void run() {
        forget_the_worker();
        forget_its_layout();
        be_first_to_go();
        open_uffd();
        join_namespaces();
        map_shared();
        arrange_fds();
        drop_privileges();
        reset_signals();
        install_filter_and_jump();
    }

private:
    long need(long returned, const char* step) {
        if (returned == -1) give_up(report_, step, errno);
        return returned;
    }

    // Unregisters addresses that libc and the kernel know for this thread and that will be
    // unmapped.
    void forget_the_worker() {
        need(prctl(PR_SET_PDEATHSIG, SIGKILL), "ask to die with the worker");
        unregister_rseq();
        need(syscall(SYS_set_robust_list, nullptr, robust_list_head_size),
             "drop the robust futex list");
        syscall(SYS_set_tid_address, nullptr);
        // A terminal's signals are meant for the worker; the box has no terminal.
        need(setsid(), "start a session");
        syscall(SYS_arch_prctl, arch_shstk_disable, arch_shstk_shstk);
        prctl(PR_SET_NAME, options_.name.c_str());
    }

    // What the kernel keeps about the executed file (heap, arguments, auxiliary vector) is still
    // the worker's. Nothing needs it here; kernels without this call keep it.
    void forget_its_layout() {
        const uint64_t here = options_.mailbox_address;
        std::array<uint64_t, 2> end_of_vector{};  // AT_NULL
        prctl_mm_map map{};
        map.start_code = map.start_data = map.start_stack = map.arg_start = map.env_start = here;
        map.end_code = map.end_data = map.arg_end = map.env_end = here + page_size;
        map.start_brk = map.brk = here + 2 * page_size;
        map.auxv = reinterpret_cast<__u64*>(end_of_vector.data());
        map.auxv_size = sizeof(end_of_vector);
        map.exe_fd = static_cast<__u32>(-1);
        prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0);
    }

    void unregister_rseq() {
        if (__rseq_size == 0) return;
        auto* area = static_cast<char*>(__builtin_thread_pointer()) + __rseq_offset;
        for (const unsigned size : {rseq_registered_size, __rseq_size}) {
            if (syscall(SYS_rseq, area, size, RSEQ_FLAG_UNREGISTER, RSEQ_SIG) == 0) return;
        }
        give_up(report_, "unregister rseq", errno);
    }

    // Before entering the box, which has no /dev/userfaultfd, and while there are capabilities:
    // without them it would not report faults taken in the kernel.
    void open_uffd() {
        auto uffd = open_userfaultfd(O_CLOEXEC | O_NONBLOCK);
        if (!uffd) give_up(report_, "open a userfaultfd", uffd.error().code);
        uffd_ = uffd->release();
    }

    void join_namespaces() {
        need(setns(bootstrap_.init_pidfd, CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS),
             "enter the sandbox");
        if (bootstrap_.time_namespace >= 0) {
            need(setns(bootstrap_.time_namespace, CLONE_NEWTIME), "enter the time namespace");
        }
        need(chroot(box_root), "enter the empty root");
        need(chdir("/"), "enter the empty root");
        if (bootstrap_.has_user) become_root_of_box();
        syscall(SYS_keyctl, 1 /* KEYCTL_JOIN_SESSION_KEYRING */, nullptr);
    }

    // The last namespace to join: from then on no other namespaces of the host can be entered.
    void become_root_of_box() {
        need(setns(bootstrap_.init_pidfd, CLONE_NEWUSER), "enter the user namespace");
        need(syscall(SYS_setgroups, 0, nullptr), "drop supplementary groups");
        need(syscall(SYS_setresgid, 0, 0, 0), "become the session's group");
        need(syscall(SYS_setresuid, 0, 0, 0), "become the session's user");
        // Changing the user has cleared it.
        need(prctl(PR_SET_PDEATHSIG, SIGKILL), "ask to die with the worker");
    }

    void map_shared() {
        map_at(options_.code_address, options_.code_size, PROT_READ | PROT_EXEC,
               options_.code_memfd, "map the stub");
        map_at(options_.mailbox_address, options_.mailbox_size, PROT_READ | PROT_WRITE,
               options_.mailbox_memfd, "map the mailbox");
    }

    void map_at(uint64_t address, uint64_t size, int protection, int fd, const char* step) {
        void* const wanted = reinterpret_cast<void*>(address);
        void* const mapped =
            mmap(wanted, size, protection, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
        if (mapped == MAP_FAILED) give_up(report_, step, errno);
        if (mapped != wanted) give_up(report_, step, EEXIST);
    }

    // In steps, because the final number of one descriptor may be the present one of another.
    void arrange_fds() {
        const char* const step = "arrange descriptors";
        int parked = parking_fds_begin;
        const auto park = [&](int fd) { need(dup3(fd, parked++, O_CLOEXEC), step); };
        // A source above parking_fds_begin could be overwritten before it is used, so every source
        // is first duplicated to above all numbers that will be used.
        const auto needed = static_cast<int>(options_.kept_fds.size()) + 1;
        const int clear_of_all = parking_fds_begin + needed;
        std::vector<int> sources{
            static_cast<int>(need(fcntl(uffd_, F_DUPFD_CLOEXEC, clear_of_all), step))};
        for (const int fd : options_.kept_fds) {
            sources.push_back(
                static_cast<int>(need(fcntl(fd, F_DUPFD_CLOEXEC, clear_of_all), step)));
        }
        for (const int fd : sources) park(fd);
        need(close_range(0, parking_fds_begin - 1, 0), step);
        need(close_range(static_cast<unsigned>(parked), ~0U, 0), step);
        for (int i = 0; i < needed; ++i) {
            const int number = i == 0 ? empty_process_uffd : empty_process_kept_fds_begin + i - 1;
            need(dup3(parking_fds_begin + i, number, O_CLOEXEC), step);
        }
        need(close_range(static_cast<unsigned>(empty_process_kept_fds_begin + needed - 1), ~0U, 0),
             step);
        if (options_.fd_base != 0) occupy_low_fds();
    }

    // Occupies home's numbers with an O_PATH descriptor, which is good for nothing: io_uring takes
    // descriptors that no filter sees.
    void occupy_low_fds() {
        const char* const step = "set the home descriptors' numbers aside";
        rlimit limit{};
        need(getrlimit(RLIMIT_NOFILE, &limit), step);
        limit.rlim_cur = limit.rlim_max;
        need(setrlimit(RLIMIT_NOFILE, &limit), step);
        const auto first = static_cast<unsigned>(need(open("/", O_PATH | O_CLOEXEC), step));
        for (unsigned fd =
                 empty_process_kept_fds_begin + static_cast<unsigned>(options_.kept_fds.size());
             fd < options_.fd_base; ++fd) {
            need(dup3(static_cast<int>(first), static_cast<int>(fd), O_CLOEXEC), step);
        }
        close(static_cast<int>(first));  // frees the lowest number, for the listener
    }

    void set_limits() {
        // The kernel counts tasks per user, gpr's own included: spare_tasks more than the worker
        // admits.
        const ProcessLimits& limits = bootstrap_.limits;
        if (limits.tasks != 0) lower(RLIMIT_NPROC, limits.tasks + spare_tasks);
        if (limits.files != 0) {
            const uint64_t end = uint64_t{options_.fd_last} + 1;
            lower(RLIMIT_NOFILE, std::min(options_.fd_base + limits.files, end));
        }
        // This limit is meant for the worker only.
        rlimit data{};
        need(getrlimit(RLIMIT_DATA, &data), "lift the worker's limit");
        data.rlim_cur = data.rlim_max;
        need(setrlimit(RLIMIT_DATA, &data), "lift the worker's limit");
    }

    void lower(__rlimit_resource_t resource, rlim_t most) {
        rlimit limit{};
        need(getrlimit(resource, &limit), "limit the process");
        limit.rlim_max = std::min<rlim_t>(limit.rlim_max, most);
        limit.rlim_cur = limit.rlim_max;
        need(setrlimit(resource, &limit), "limit the process");
    }

    // If the host runs out of memory, the program shall be killed rather than its worker.
    void be_first_to_go() {
        const int file = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
        if (file == -1) return;
        char text[16] = {};
        [[maybe_unused]] const auto got = read(file, text, sizeof(text) - 1);
        const int length =
            snprintf(text, sizeof(text), "%d", std::min(std::atoi(text) + oom_distance, 1000));
        [[maybe_unused]] const auto put = pwrite(file, text, static_cast<size_t>(length), 0);
        close(file);
    }

    void drop_privileges() {
        // 1 also keeps a core_pattern pipe from starting; home's kernel writes the core.
        rlimit core{};
        if (getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max >= 1) {
            core.rlim_cur = 1;
            setrlimit(RLIMIT_CORE, &core);
        }
        set_limits();
        const auto dropped = keep_only_capabilities(bootstrap_.capabilities);
        if (!dropped) give_up(report_, "drop privileges", dropped.error().code);
        need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "forgo new privileges");
        need(prctl(PR_SET_DUMPABLE, 1), "allow the worker's ptrace");
    }

    // Raw calls, because libc's wrappers refuse two signals that it uses itself.
    void reset_signals() {
        struct KernelSigaction {
            uint64_t handler, flags, restorer, mask;
        } standard{};
        for (int signal = 1; signal <= 64; ++signal) {
            if (signal == SIGKILL || signal == SIGSTOP) continue;
            need(syscall(SYS_rt_sigaction, signal, &standard, nullptr, sizeof(uint64_t)),
                 "reset signal handlers");
        }
        stack_t none{};
        none.ss_flags = SS_DISABLE;
        need(sigaltstack(&none, nullptr), "drop the signal stack");
        const uint64_t empty = 0;
        need(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &empty, nullptr, sizeof(empty)),
             "unblock signals");
    }

    [[noreturn]] void install_filter_and_jump() {
        sock_fprog program{static_cast<unsigned short>(options_.filter.size()),
                           const_cast<sock_filter*>(options_.filter.data())};
        report_.state.store(BootstrapState::installing_filter, std::memory_order_release);
        wake(report_);

        // No system call may follow the one that succeeds.
        report_.wait_killable = true;
        long listener = syscall(
            SYS_seccomp, SECCOMP_SET_MODE_FILTER,
            SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program);
        if (listener == -1 && errno == EINVAL) {
            report_.wait_killable = false;
            listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                               SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
        }
        if (listener == -1) give_up(report_, "install the seccomp filter", errno);
        report_.state.store(BootstrapState::in_stub, std::memory_order_release);
        jump(options_.entry, options_.entry_argument, options_.stack_top);
    }

    [[noreturn]] static void jump(uint64_t entry, uint64_t argument, uint64_t stack_top) {
        asm volatile(
            "mov %[stack], %%rsp\n\t"
            "pushq $0\n\t"  // flags; nothing is left above stack_top
            "popfq\n\t"
            "xor %%eax, %%eax\n\t"
            "xor %%ebx, %%ebx\n\t"
            "xor %%ecx, %%ecx\n\t"
            "xor %%edx, %%edx\n\t"
            "xor %%ebp, %%ebp\n\t"
            "xor %%r8d, %%r8d\n\t"
            "xor %%r9d, %%r9d\n\t"
            "xor %%r10d, %%r10d\n\t"
            "xor %%r11d, %%r11d\n\t"
            "xor %%r12d, %%r12d\n\t"
            "xor %%r13d, %%r13d\n\t"
            "xor %%r14d, %%r14d\n\t"
            "xor %%r15d, %%r15d\n\t"
            "jmp *%%rsi"
            :
            : [stack] "a"(stack_top), "S"(entry), "D"(argument)
            : "memory");
        __builtin_unreachable();
    }

    const Bootstrap& bootstrap_;
    const EmptyProcessOptions& options_;
    BootstrapReport& report_;
    int uffd_ = -1;
};

bool has_ended(int pidfd) {
    pollfd ended{pidfd, POLLIN, 0};
    return poll(&ended, 1, 0) > 0;
}

}  // namespace

void bootstrap_empty_process(const Bootstrap& bootstrap) { Bootstrapper(bootstrap).run(); }

Result<> await_bootstrap(const BootstrapReport& report, int pidfd) {
    const auto give_up_at = std::chrono::steady_clock::now() + bootstrap_deadline;
    const timespec one_ms{0, 1'000'000};
    while (true) {
        const auto state = report.state.load(std::memory_order_acquire);
        if (state == BootstrapState::in_stub) return {};
        if (state == BootstrapState::failed) {
            return fail(report.error,
                        std::string("the empty process could not ") + report.failed_step);
        }
        if (has_ended(pidfd)) return fail("the empty process was killed while it was made");
        if (std::chrono::steady_clock::now() > give_up_at) {
            return fail(ETIMEDOUT, "the empty process was not ready in time");
        }
        if (state == BootstrapState::running) {
            syscall(SYS_futex, &report.state, FUTEX_WAIT, state, &one_ms, nullptr, 0);
        } else {
            std::this_thread::yield();
        }
    }
}

}  // namespace gpr
