// The filters in the kernel: a thread of a forked child installs one, its sibling answers.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>

#include "syscall/filter.h"

namespace gpr {
namespace {

constexpr int fd_base = 200;
constexpr long answer_base = 0x10000;  // what a notified call returns: this + its number

using Args = std::array<uint64_t, 6>;

enum class Expect { real, notified, refused, no_fd };
struct Call {
    const char* what;
    uint32_t number;
    Args args;
    Expect expect;
    bool from_stub = false;
};

// Shared with the child, so that the checks run in the parent.
struct Report {
    std::atomic<int> installed;  // 1, or -errno
    std::atomic<int> listener;
    std::atomic<bool> done;
    int count;
    std::array<long, 32> results;
    std::array<bool, 32> notified;
};

// mov rax, rdi; then the arguments one place down, as the kernel wants them; syscall; ret.
constexpr unsigned char thunk[] = {
    0x48, 0x89, 0xf8,              // mov rax, rdi
    0x48, 0x89, 0xf7,              // mov rdi, rsi
    0x48, 0x89, 0xd6,              // mov rsi, rdx
    0x48, 0x89, 0xca,              // mov rdx, rcx
    0x4d, 0x89, 0xc2,              // mov r10, r8
    0x4d, 0x89, 0xc8,              // mov r8, r9
    0x4c, 0x8b, 0x4c, 0x24, 0x08,  // mov r9, [rsp+8]
    0x0f, 0x05,                    // syscall
    0xc3,                          // ret
};
using Thunk = long (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

Thunk thunk_at(uint64_t address) {
    void* page = mmap(reinterpret_cast<void*>(address), 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (page == MAP_FAILED) return nullptr;
    std::memcpy(page, thunk, sizeof thunk);
    return reinterpret_cast<Thunk>(page);
}

struct Job {
    std::vector<sock_filter> filter;
    const std::vector<Call>* calls;
    Report* report;
    Thunk program;
    Thunk stub;
};

// Once the filter is in, this thread makes no call but those of the list, and then parks.
void* filtered_thread(void* argument) {
    auto& job = *static_cast<Job*>(argument);
    sock_fprog program{static_cast<unsigned short>(job.filter.size()), job.filter.data()};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    long listener =
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (listener < 0) {
        job.report->installed = -errno;
        return nullptr;
    }
    job.report->listener = static_cast<int>(listener);
    job.report->installed = 1;
    for (size_t i = 0; i < job.calls->size(); ++i) {
        const Call& c = (*job.calls)[i];
        Thunk make = c.from_stub ? job.stub : job.program;
        job.report->results[i] =
            make(c.number, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5]);
        job.report->count = static_cast<int>(i) + 1;
    }
    job.report->done = true;
    job.stub(gpr_park_number, 0, 0, 0, 0, 0, 0);
    return nullptr;
}

// Answers until the thread parks at the end of its list.
void answer(Report& report) {
    for (;;) {
        seccomp_notif request{};
        if (ioctl(report.listener, SECCOMP_IOCTL_NOTIF_RECV, &request) != 0) _exit(3);
        if (report.done) return;
        report.notified[static_cast<size_t>(report.count)] = true;
        seccomp_notif_resp response{};
        response.id = request.id;
        response.val = answer_base + request.data.nr;
        if (ioctl(report.listener, SECCOMP_IOCTL_NOTIF_SEND, &response) != 0) _exit(4);
    }
}

[[noreturn]] void child(const std::vector<sock_filter>& filter, const std::vector<Call>& calls,
                        Report& report) {
    alarm(20);
    int null = open("/dev/null", O_RDWR);
    if (dup2(null, fd_base) != fd_base || dup2(null, fd_base + 1) != fd_base + 1) _exit(5);
    Job job{filter, &calls, &report, thunk_at(0x4400'0000'0000),
            thunk_at(uint64_t{stub_high_word} << 32)};
    pthread_t thread;
    if (!job.program || !job.stub) _exit(6);
    if (pthread_create(&thread, nullptr, filtered_thread, &job) != 0) _exit(7);
    while (report.installed == 0) sched_yield();
    if (report.installed < 0) _exit(0);
    answer(report);
    _exit(0);
}

void check_live(const std::vector<sock_filter>& filter, const std::vector<Call>& calls) {
    auto* report = static_cast<Report*>(
        mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    REQUIRE(report != MAP_FAILED);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) child(filter, calls, *report);
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    if (report->installed < 0) {
        MESSAGE("skipped: seccomp with a listener: " << std::strerror(-report->installed));
        munmap(report, sizeof *report);
        return;
    }
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    REQUIRE(report->count == static_cast<int>(calls.size()));
    for (size_t i = 0; i < calls.size(); ++i) {
        const Call& c = calls[i];
        CAPTURE(c.what);
        CHECK(report->notified[i] == (c.expect == Expect::notified));
        long result = report->results[i];
        if (c.expect == Expect::notified) CHECK(result == answer_base + c.number);
        if (c.expect == Expect::refused) CHECK(result == -ENOSYS);
        if (c.expect == Expect::no_fd) CHECK(result == -EBADF);
        if (c.expect != Expect::real) continue;
        if (c.number == SYS_getpid)
            CHECK(result == pid);
        else if (c.number == SYS_getppid)
            CHECK(result == getpid());
        else if (c.number == SYS_write)
            CHECK(result == 1);
        else
            CHECK(result == 0);
    }
    munmap(report, sizeof *report);
}

const uint64_t junk = 0xdeadbeef00000000;
uint32_t futex_word = 0;
char byte = 'x';

Args write_args(uint64_t fd) { return {fd, reinterpret_cast<uint64_t>(&byte), 1}; }
Args wake_args() { return {reinterpret_cast<uint64_t>(&futex_word), FUTEX_WAKE_PRIVATE, 1}; }

TEST_CASE("the acceptor's filter in the kernel") {
    FilterOptions options;
    options.fd_base = fd_base;
    std::vector<Call> calls{
        {"getpid", SYS_getpid, {}, Expect::real},
        {"sched_yield", SYS_sched_yield, {}, Expect::real},
        {"getppid", SYS_getppid, {}, Expect::notified},
        {"getppid by the stub", SYS_getppid, {}, Expect::notified, true},
        {"munmap by the stub", SYS_munmap, {0x1000, 4096}, Expect::real, true},
        {"write to an own fd", SYS_write, write_args(fd_base), Expect::real},
        {"write with junk above the fd", SYS_write, write_args(junk | fd_base), Expect::real},
        {"write to home's fd", SYS_write, write_args(1), Expect::notified},
        {"write to fd -1", SYS_write, write_args(uint64_t(-1)), Expect::no_fd},
        {"write to fd -1 by the stub", SYS_write, write_args(uint64_t(-1)), Expect::no_fd, true},
        {"pwrite to fd -1", SYS_pwrite64, write_args(uint64_t(-1)), Expect::notified},
        {"fsync just below the base", SYS_fsync, {fd_base - 1}, Expect::notified},
        {"splice between own and home", SYS_splice, {fd_base, 0, 1, 0, 1, 0}, Expect::notified},
        {"mmap", SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS}, Expect::notified},
        {"futex wake", SYS_futex, wake_args(), Expect::real},
        {"rseq", SYS_rseq, {}, Expect::refused},
        {"an unknown number", 3000, {}, Expect::refused},
        {"an x32 number", 0x40000000 | SYS_getpid, {}, Expect::refused},
        {"park", gpr_park_number, {}, Expect::notified},
        {"park by the stub", gpr_park_number, {}, Expect::notified, true},
        {"exit_group", SYS_exit_group, {}, Expect::notified},
    };
    check_live(acceptor_filter(options), calls);
    options.conditions.mixed_session = true;
    check_live(acceptor_filter(options), {{"futex wake", SYS_futex, wake_args(), Expect::notified},
                                          {"getpid", SYS_getpid, {}, Expect::real}});
}

TEST_CASE("home's filter in the kernel") {
    FilterOptions options;
    options.fd_base = fd_base;
    std::vector<Call> calls{
        {"getppid", SYS_getppid, {}, Expect::real},
        {"write", SYS_write, write_args(fd_base), Expect::real},
        {"munmap", SYS_munmap, {0x1000, 4096}, Expect::notified},
        {"munmap by the stub", SYS_munmap, {0x1000, 4096}, Expect::real, true},
        {"rt_sigaction", SYS_rt_sigaction, {1, 0, 0, 8}, Expect::notified},
        {"futex wake", SYS_futex, wake_args(), Expect::notified},
        {"rseq", SYS_rseq, {}, Expect::refused},
        {"park by the stub", gpr_park_number, {}, Expect::notified, true},
    };
    check_live(home_filter(options), calls);
}

}  // namespace
}  // namespace gpr
