#include "acceptor/box/sandbox.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <filesystem>

#include "acceptor/box/cgroup.h"
#include "acceptor/box/empty_process_bootstrap.h"
#include "acceptor/box/privileges.h"
#include "acceptor/box/sandbox_init.h"

namespace gpr {
namespace {

constexpr auto end_deadline = std::chrono::seconds(30);

// Like fork, but without libc's atfork handlers.
long clone_process(uint64_t flags, int* pidfd, const pid_t* wanted_pid, int cgroup_fd) {
    clone_args args{};
    args.flags = flags | CLONE_PIDFD | CLONE_CLEAR_SIGHAND;
    args.pidfd = reinterpret_cast<uint64_t>(pidfd);
    args.exit_signal = SIGCHLD;
    if (wanted_pid) {
        // In the innermost pid namespace; the outer ones assign any.
        args.set_tid = reinterpret_cast<uint64_t>(wanted_pid);
        args.set_tid_size = 1;
    }
    if (cgroup_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = static_cast<uint64_t>(cgroup_fd);
    }
    return syscall(SYS_clone3, &args, sizeof(args));
}

bool ended_within(const Fd& pidfd, int timeout_ms) {
    pollfd ended{pidfd.get(), POLLIN, 0};
    return poll(&ended, 1, timeout_ms) > 0;
}

// While this exists, the worker's new children are born in the box's pid namespace.
class ChildrenInBox {
public:
    static Result<ChildrenInBox> enter(const Fd& init_pidfd, const Fd& own_pid_namespace) {
        GPR_CHECK(
            from_libc(setns(init_pidfd.get(), CLONE_NEWPID), "enter the sandbox's pid namespace"));
        return ChildrenInBox(own_pid_namespace.get());
    }
    ChildrenInBox(ChildrenInBox&& other) noexcept : own_(std::exchange(other.own_, -1)) {}
    ChildrenInBox& operator=(ChildrenInBox&&) = delete;
    ~ChildrenInBox() {
        // Cannot fail: a process may always return to its own namespace.
        if (own_ >= 0) GPR_ASSERT(setns(own_, CLONE_NEWPID) == 0);
    }

private:
    explicit ChildrenInBox(int own) : own_(own) {}
    int own_;
};

class SharedReport {
public:
    static Result<SharedReport> create() {
        void* const memory = mmap(nullptr, sizeof(BootstrapReport), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return fail(errno, "share memory with the empty process");
        return SharedReport(new (memory) BootstrapReport);
    }
    SharedReport(SharedReport&& other) noexcept : report_(std::exchange(other.report_, nullptr)) {}
    SharedReport& operator=(SharedReport&&) = delete;
    ~SharedReport() {
        if (report_) munmap(report_, sizeof(BootstrapReport));
    }
    BootstrapReport& operator*() const { return *report_; }

private:
    explicit SharedReport(BootstrapReport* report) : report_(report) {}
    BootstrapReport* report_;
};

// Maps the session's id only, so that no other user of this host exists in the box.
Result<> write_map(pid_t process, const char* file, uint32_t user) {
    const auto path = fmt::format("/proc/{}/{}", process, file);
    const auto line = fmt::format("0 {} 1\n", user);
    const Fd map(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!map) return fail(errno, "open " + path);
    if (write(map.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size())) return {};
    return fail(errno, fmt::format("make the session user {} of this host ({})", user, file));
}

bool read_report(const Fd& reader, InitReport& report) {
    return TEMP_FAILURE_RETRY(read(reader.get(), &report, sizeof(report))) == sizeof(report);
}

Result<Fd> take_fd(const Fd& pidfd, int number, const char* what) {
    Fd fd(static_cast<int>(syscall(SYS_pidfd_getfd, pidfd.get(), number, 0)));
    if (!fd) return fail(errno, fmt::format("take the empty process's {}", what));
    return fd;
}

Result<> check(const EmptyProcessOptions& options) {
    const auto aligned = [](uint64_t address, uint64_t size) {
        return address != 0 && address % page_size == 0 && size != 0 && size % page_size == 0;
    };
    if (!aligned(options.code_address, options.code_size) ||
        !aligned(options.mailbox_address, options.mailbox_size)) {
        return fail(EINVAL, "stub and mailbox must be whole pages");
    }
    if (options.filter.empty() || options.filter.size() > BPF_MAXINSNS) {
        return fail(EINVAL, "the empty process needs a seccomp filter");
    }
    return {};
}

Failure explain_clone(int error, pid_t wanted_pid) {
    switch (error) {
        case EEXIST: return fail(error, fmt::format("pid {} is taken in the sandbox", wanted_pid));
        case EINVAL:
            return fail(error, fmt::format("pid {} is beyond this host's limit; raise "
                                           "kernel.pid_max to the initiator's",
                                           wanted_pid));
        case ENOMEM:
            return fail(error, "the sandbox has ended, or there is no memory for its processes");
        default: return fail(error, fmt::format("start process {} in the sandbox", wanted_pid));
    }
}

template <class Visit>
void for_each_number(const std::string& directory, Visit visit) {
    std::error_code gone;
    for (std::filesystem::directory_iterator entry(directory, gone), end; !gone && entry != end;
         entry.increment(gone)) {
        const auto name = entry->path().filename().string();
        pid_t number = 0;
        const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
        if (parsed.ec == std::errc() && parsed.ptr == name.data() + name.size()) visit(number);
    }
}

// A task that has died, or is stopped in its exit until we, its tracer, continue it.
void reap(pid_t tid) {
    int status = 0;
    while (waitpid(tid, &status, WNOHANG | __WALL) == tid) {
        if (!WIFSTOPPED(status)) return;
        ptrace(PTRACE_CONT, tid, nullptr, nullptr);
    }
}

}  // namespace

ClockOffsets clock_offsets(const ClockSample& initiators, const ClockSample& ours) {
    // Unsigned, because a peer may claim any time; the kernel refuses absurd offsets.
    const auto difference = [](int64_t theirs, int64_t here) {
        return static_cast<int64_t>(static_cast<uint64_t>(theirs) - static_cast<uint64_t>(here));
    };
    return {difference(initiators.monotonic_ns, ours.monotonic_ns),
            difference(initiators.boottime_ns, ours.boottime_ns)};
}

Result<std::unique_ptr<Sandbox>> Sandbox::create(const SandboxOptions& options) {
    if (!has_capability(CAP_SYS_ADMIN)) {
        return fail(EPERM, "cannot make a sandbox's namespaces; run the acceptor as root");
    }
    std::unique_ptr<Sandbox> sandbox(new Sandbox);
    sandbox->own_pid_namespace_ = Fd(open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC));
    if (!sandbox->own_pid_namespace_) return fail(errno, "open /proc/self/ns/pid");
    sandbox->cgroup_fd_ = options.cgroup_fd;
    sandbox->limits_ = options.limits;
    sandbox->process_limits_ = options.process_limits;
    sandbox->capabilities_ = options.capabilities;
    sandbox->user_ = options.user;
    GPR_CHECK(sandbox->start_init(options));
    return sandbox;
}

Result<> Sandbox::start_init(const SandboxOptions& options) {
    std::array<int, 2> alive{}, report{};
    GPR_CHECK(from_libc(pipe2(alive.data(), O_CLOEXEC), "make init's pipe"));
    const Fd alive_reader(alive[0]);
    alive_ = Fd(alive[1]);
    GPR_CHECK(from_libc(pipe2(report.data(), O_CLOEXEC), "make init's pipe"));
    const Fd report_reader(report[0]);
    Fd report_writer(report[1]);

    int pidfd = -1;
    long builder = clone_process(namespaces_of_worker, &pidfd, nullptr, cgroup_fd_);
    if (builder == -1 && cgroup_fd_ >= 0 && !limits_.any()) {
        // Some kernels and cgroups do not support CLONE_INTO_CGROUP. A session without a cgroup is
        // still boxed.
        cgroup_fd_ = -1;
        builder = clone_process(namespaces_of_worker, &pidfd, nullptr, cgroup_fd_);
        if (builder > 0) spdlog::warn("the session's cgroup cannot be used");
    }
    if (builder == 0) build_sandbox(options, alive_reader.get(), report_writer.get());
    if (builder == -1) {
        return fail(errno, "cannot make the sandbox's namespaces (see user.max_*_namespaces)");
    }
    const Fd builder_pidfd(pidfd);
    report_writer.reset();

    InitReport built;
    const bool reported = read_report(report_reader, built);
    TEMP_FAILURE_RETRY(waitpid(static_cast<pid_t>(builder), nullptr, __WALL));
    if (!reported) return fail("the sandbox's builder died");
    if (built.error != 0) {
        return fail(built.error, fmt::format("the sandbox's init could not {}", built.failed_step));
    }
    // It is our child, so its pid cannot be reused before we wait for it.
    init_pid_ = built.init_pid;
    init_pidfd_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, init_pid_, 0)));
    if (!init_pidfd_) return fail(errno, "open the sandbox's init");
    GPR_CHECK(map_user());
    if (write(alive_.get(), "", 1) != 1) return fail(errno, "start the sandbox's init");

    InitReport answer;
    if (!read_report(report_reader, answer)) return fail("the sandbox's init died");
    if (answer.error != 0) {
        return fail(answer.error,
                    fmt::format("the sandbox's init could not {}", answer.failed_step));
    }
    if (answer.limit_of_ids > 0) limit_of_ids_ = answer.limit_of_ids;
    struct stat pid_namespace {};
    const auto directory = fmt::format("/proc/{}/ns/", init_pid_);
    GPR_CHECK(from_libc(stat((directory + "pid").c_str(), &pid_namespace),
                        "look at the sandbox's pid namespace"));
    pid_namespace_link_ = fmt::format("pid:[{}]", pid_namespace.st_ino);
    if (built.has_time_namespace) {
        time_namespace_ = Fd(open((directory + "time").c_str(), O_RDONLY | O_CLOEXEC));
        if (!time_namespace_) return fail(errno, "open the sandbox's time namespace");
    }
    return {};
}

Result<> Sandbox::map_user() const {
    if (user_ == 0) return {};
    GPR_CHECK(write_map(init_pid_, "uid_map", user_));
    return write_map(init_pid_, "gid_map", user_);
}

Result<EmptyProcess> Sandbox::spawn(pid_t wanted_pid, const EmptyProcessOptions& options) {
    GPR_CHECK(check(options));
    GPR_TRY(auto report, SharedReport::create());
    EmptyProcess made;
    {
        GPR_TRY(auto in_box, ChildrenInBox::enter(init_pidfd_, own_pid_namespace_));
        int pidfd = -1;
        const long pid = clone_process(0, &pidfd, &wanted_pid, cgroup_fd_);
        if (pid == 0) {
            bootstrap_empty_process({options, init_pidfd_.get(), time_namespace_.get(),
                                     capabilities_, user_ != 0, process_limits_, *report});
        }
        if (pid == -1) return explain_clone(errno, wanted_pid);
        made.host_pid = static_cast<pid_t>(pid);
        made.pidfd = Fd(pidfd);
    }
    const auto finished = finish_spawn(*report, made);
    if (!finished) {
        syscall(SYS_pidfd_send_signal, made.pidfd.get(), SIGKILL, nullptr, 0);
        TEMP_FAILURE_RETRY(waitpid(made.host_pid, nullptr, __WALL));
        return tl::make_unexpected(finished.error());
    }
    return made;
}

Result<> Sandbox::finish_spawn(const BootstrapReport& report, EmptyProcess& made) {
    GPR_CHECK(await_bootstrap(report, made.pidfd.get()));
    made.wait_killable = report.wait_killable;
    GPR_TRY(made.uffd, take_fd(made.pidfd, empty_process_uffd, "userfaultfd"));
    GPR_TRY(made.listener, take_fd(made.pidfd, empty_process_listener, "seccomp listener"));
    GPR_TRY(made.mappings, read_inherited_mappings(made.host_pid));
    return {};
}

std::string Sandbox::limit_exceeded() const { return gpr::limit_exceeded(cgroup_fd_, limits_); }

bool Sandbox::has_room_for_tasks(uint64_t there_are, uint64_t more) const {
    const uint64_t most = process_limits_.tasks;
    if (most != 0 && there_are + more > most) return false;
    return gpr::has_room_for_tasks(cgroup_fd_, limits_, more);
}

Sandbox::~Sandbox() {
    if (init_pid_ > 0) end();
}

// Init is gone only when the kernel has killed everything else in the box and all have been reaped:
// our children and tracees by us, the rest by init.
void Sandbox::end() {
    const auto give_up_at = std::chrono::steady_clock::now() + end_deadline;
    syscall(SYS_pidfd_send_signal, init_pidfd_.get(), SIGKILL, nullptr, 0);
    for (int wait_ms = 1; !ended_within(init_pidfd_, wait_ms);
         wait_ms = std::min(2 * wait_ms, 50)) {
        reap_processes();
        if (std::chrono::steady_clock::now() > give_up_at) {
            spdlog::error("sandbox {}: processes do not end, left to the kernel", init_pid_);
            return;
        }
    }
    TEMP_FAILURE_RETRY(waitpid(init_pid_, nullptr, __WALL));
}

void Sandbox::reap_processes() {
    for_each_number("/proc", [this](pid_t pid) {
        const auto directory = fmt::format("/proc/{}/", pid);
        std::array<char, 64> link{};
        if (readlink((directory + "ns/pid").c_str(), link.data(), link.size() - 1) < 0) return;
        if (pid == init_pid_ || pid_namespace_link_ != link.data()) return;
        for_each_number(directory + "task", [](pid_t task) { reap(task); });
        reap(pid);
    });
}

}  // namespace gpr
