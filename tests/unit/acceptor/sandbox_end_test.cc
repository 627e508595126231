// Nothing is left of a sandbox, however it ends.
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>

#include "base/uapi/userfaultfd.h"
#include "base/userfaultfd.h"
#include "tests/unit/acceptor/sandbox_helpers.h"

using namespace gpr;
using namespace gpr::test;

TEST_CASE("destruction leaves nothing, whatever state the processes are in") {
    std::string inside;
    std::vector<pid_t> pids;
    {
        auto sandbox = make_sandbox();
        inside = namespace_link(sandbox->init_pid(), "pid");
        CHECK(processes_in(inside) == 1);
        auto idle = make_process(*sandbox, 100);
        auto traced = make_process(*sandbox, 101);
        auto dead = make_process(*sandbox, 102);
        pids = {idle.process.host_pid, traced.process.host_pid, dead.process.host_pid,
                sandbox->init_pid()};
        // With the exit stop a killed tracee still waits for us.
        REQUIRE(ptrace(PTRACE_SEIZE, traced.process.host_pid, 0,
                       PTRACE_O_TRACEEXIT | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK) == 0);
        clone_args arguments{};
        arguments.exit_signal = SIGCHLD;
        memcpy(traced.data(), &arguments, sizeof(arguments));
        traced.start_call(SYS_clone3, {StubProcess::data_address(), sizeof(arguments)});
        int status = 0;
        REQUIRE(waitpid(traced.process.host_pid, &status, __WALL) == traced.process.host_pid);
        kill(dead.process.host_pid, SIGKILL);
        CHECK(processes_in(inside) == 5);
    }
    CHECK(processes_in(inside) == 0);
    for (const pid_t pid : pids) CHECK(kill(pid, 0) == -1);
    CHECK(waitpid(-1, nullptr, WNOHANG | __WALL) == -1);
    CHECK(errno == ECHILD);
}

TEST_CASE("destruction waits for a thread in a fault that nobody serves, and leaves others alone") {
    const pid_t bystander = fork();
    if (bystander == 0) _exit(9);
    std::string inside;
    {
        auto sandbox = make_sandbox();
        inside = namespace_link(sandbox->init_pid(), "pid");
        auto process = make_process(*sandbox, 100);
        REQUIRE(enable_userfaultfd(process.process.uffd, 0));
        const long area = process.call(
            SYS_mmap, {0, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~0UL, 0});
        uffdio_register range{};
        range.range = {static_cast<uint64_t>(area), page_size};
        range.mode = UFFDIO_REGISTER_MODE_MISSING;
        REQUIRE(ioctl(process.process.uffd.get(), UFFDIO_REGISTER, &range) == 0);
        process.start_call(SYS_uname, {static_cast<uint64_t>(area)});
        pollfd ready{process.process.uffd.get(), POLLIN, 0};
        REQUIRE(poll(&ready, 1, 10'000) == 1);
    }
    CHECK(processes_in(inside) == 0);
    int status = 0;
    REQUIRE(waitpid(bystander, &status, 0) == bystander);
    CHECK(WEXITSTATUS(status) == 9);
}

TEST_CASE("a worker that is killed leaves nothing") {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (int round = 0; round < 5; ++round) {
        std::array<int, 2> pipe_fds{};
        REQUIRE(pipe2(pipe_fds.data(), O_CLOEXEC) == 0);
        const Fd reader(pipe_fds[0]);
        Fd writer(pipe_fds[1]);
        const pid_t worker = fork();
        if (worker == 0) {
            auto sandbox = Sandbox::create({});
            if (!sandbox) _exit(1);
            auto process = StubProcess::spawn(**sandbox, 100);
            if (!process) _exit(2);
            if (round % 2 == 1) ptrace(PTRACE_SEIZE, process->process.host_pid, 0, 0);
            const pid_t init = (*sandbox)->init_pid();
            if (write(writer.get(), &init, sizeof(init)) < 0) _exit(3);
            while (true) pause();
        }
        writer.reset();
        pid_t init = 0;
        REQUIRE(read(reader.get(), &init, sizeof(init)) == sizeof(init));
        const auto inside = namespace_link(init, "pid");
        CHECK(processes_in(inside) == 2);
        kill(worker, SIGKILL);
        // As their reaper we see the end of all three, or wait for ever.
        for (int ended = 0; ended < 3; ++ended) REQUIRE(waitpid(-1, nullptr, __WALL) > 0);
        CHECK(processes_in(inside) == 0);
    }
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST_CASE("a worker killed while it makes a sandbox leaves nothing") {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (int round = 0; round < 40; ++round) {
        const pid_t worker = fork();
        if (worker == 0) {
            auto sandbox = Sandbox::create({});
            for (pid_t pid = 100; sandbox; ++pid) {
                static_cast<void>(StubProcess::spawn(**sandbox, pid));
            }
            _exit(1);
        }
        usleep(static_cast<useconds_t>(round * 150));
        kill(worker, SIGKILL);
        while (waitpid(-1, nullptr, __WALL) > 0) {
        }
        CHECK(errno == ECHILD);
    }
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}
