#include "acceptor/box/sandbox.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <limits>
#include <set>

#include "acceptor/box/privileges.h"
#include "base/uapi/userfaultfd.h"
#include "base/userfaultfd.h"
#include "tests/unit/acceptor/sandbox_helpers.h"

using namespace gpr;
using namespace gpr::test;

TEST_CASE("a process has the wanted pid and the worker as parent") {
    auto sandbox = make_sandbox();
    auto process = make_process(*sandbox, 4711);
    CHECK(process.call(SYS_getpid) == 4711);
    CHECK(process.call(SYS_gettid) == 4711);
    CHECK(process.call(SYS_getppid) == 0);
    CHECK(status_field(process.process.host_pid, "PPid") == std::to_string(getpid()));

    auto second = make_process(*sandbox, 4000);
    CHECK(second.call(SYS_getpid) == 4000);
    CHECK(second.call(SYS_kill, {4711, 0}) == 0);
}

TEST_CASE("a pid that is taken or impossible is refused with a reason, and the sandbox goes on") {
    auto sandbox = make_sandbox();
    auto process = make_process(*sandbox, 50);
    for (const pid_t pid : {1, 50}) {
        const auto refused = StubProcess::spawn(*sandbox, pid);
        REQUIRE(!refused);
        CHECK(refused.error().code == EEXIST);
    }
    const auto refused = StubProcess::spawn(*sandbox, 1 << 30);
    REQUIRE(!refused);
    CHECK(refused.error().message().find("kernel.pid_max") != std::string::npos);
    CHECK(make_process(*sandbox, 51).call(SYS_getpid) == 51);
    // And the worker's own children are born where it is.
    const pid_t child = fork();
    if (child == 0) _exit(namespace_link(getpid(), "pid") == namespace_link(getppid(), "pid"));
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WEXITSTATUS(status) == 1);
}

TEST_CASE("nothing of the host's files is visible or can be made") {
    auto sandbox = make_sandbox();
    auto process = make_process(*sandbox, 100);
    constexpr auto here = static_cast<uint64_t>(AT_FDCWD);
    for (const char* path : {"/proc", "/etc", "/dev", "/usr", "../../etc"}) {
        CHECK(process.call(SYS_openat, {here, process.put(path), O_RDONLY}) == -ENOENT);
    }
    const long root = process.call(SYS_openat, {here, process.put("/"), O_RDONLY | O_DIRECTORY});
    REQUIRE(root >= 0);
    // "." and "..", 24 bytes each.
    CHECK(process.call(SYS_getdents64,
                       {static_cast<uint64_t>(root), StubProcess::data_address(), 1024}) == 48);
    CHECK(process.call(SYS_mkdir, {process.put("/x"), 0700}) == -EROFS);
    CHECK(process.call(SYS_mknod, {process.put("/x"), S_IFCHR | 0600, 0x101}) < 0);
    const auto slash = process.put("/");
    CHECK(process.call(SYS_mount, {slash, slash, slash}) == -EPERM);
    CHECK(process.call(SYS_chroot, {process.put("/")}) == -EPERM);
}

TEST_CASE("only the userfaultfd, the listener and what was asked for are open") {
    auto sandbox = make_sandbox();
    std::array<int, 2> pipe_fds{};
    REQUIRE(pipe(pipe_fds.data()) == 0);
    const Fd reader(pipe_fds[0]), writer(pipe_fds[1]);
    auto process = make_process(*sandbox, 100, {writer.get(), reader.get()});
    CHECK(open_fds(process.process.host_pid) == std::set<int>{0, 1, 2, 3});
    const auto address = process.put("hello");
    CHECK(process.call(SYS_write, {empty_process_kept_fds_begin, address, 5}) == 5);
    char text[5];
    CHECK(read(reader.get(), text, 5) == 5);
    CHECK(memcmp(text, "hello", 5) == 0);
    for (uint64_t fd = 0; fd < 4; ++fd) {
        CHECK(process.call(SYS_fcntl, {fd, F_GETFD}) == FD_CLOEXEC);
    }
}

TEST_CASE("sources of kept descriptors may have any numbers") {
    auto sandbox = make_sandbox();
    const Fd null(open("/dev/null", O_WRONLY | O_CLOEXEC));
    for (const int number : {199, 200, 201, 202, 203, 260}) {
        const Fd high(fcntl(null.get(), F_DUPFD_CLOEXEC, number));
        auto process = make_process(*sandbox, 100 + number, {high.get(), null.get()});
        CHECK(open_fds(process.process.host_pid) == std::set<int>{0, 1, 2, 3});
        CHECK(process.call(SYS_write, {2, process.put("x"), 1}) == 1);
        CHECK(process.call(SYS_write, {3, process.put("x"), 1}) == 1);
    }
}

TEST_CASE("host name and network are the sandbox's own") {
    SandboxOptions options;
    options.host_name = "initiator.example";
    options.domain_name = "nis.example";
    auto sandbox = make_sandbox(options);
    auto process = make_process(*sandbox, 100);
    REQUIRE(process.call(SYS_uname, {StubProcess::data_address()}) == 0);
    utsname names{};
    memcpy(&names, process.data(), sizeof(names));
    CHECK(std::string(names.nodename) == "initiator.example");
    CHECK(std::string(names.domainname) == "nis.example");
    char ours[64];
    gethostname(ours, sizeof(ours));
    CHECK(std::string(ours) != "initiator.example");

    const long sock = process.call(SYS_socket, {AF_INET, SOCK_DGRAM, 0});
    REQUIRE(sock >= 0);
    ifreq request{};
    strcpy(request.ifr_name, "lo");
    memcpy(process.data(), &request, sizeof(request));
    REQUIRE(process.call(SYS_ioctl, {static_cast<uint64_t>(sock), SIOCGIFFLAGS,
                                     StubProcess::data_address()}) == 0);
    memcpy(&request, process.data(), sizeof(request));
    CHECK((request.ifr_flags & IFF_UP) == 0);
    request.ifr_ifindex = 2;
    memcpy(process.data(), &request, sizeof(request));
    CHECK(process.call(SYS_ioctl, {static_cast<uint64_t>(sock), SIOCGIFNAME,
                                   StubProcess::data_address()}) == -ENODEV);
    for (const char* kind : {"mnt", "net", "ipc", "uts", "pid"}) {
        CHECK(namespace_link(process.process.host_pid, kind) ==
              namespace_link(sandbox->init_pid(), kind));
        CHECK(namespace_link(process.process.host_pid, kind) != namespace_link(getpid(), kind));
    }
}

TEST_CASE("clocks are the initiator's") {
    for (const int64_t offset : {int64_t{1'234'567'890'123'456}, int64_t{-300'000'001}}) {
        SandboxOptions options;
        options.clock_offsets = ClockOffsets{offset, offset + 7'000'000'001};
        auto sandbox = make_sandbox(options);
        if (!sandbox->has_time_namespace()) {
            MESSAGE("skipped: this kernel has no time namespaces");
            return;
        }
        auto process = make_process(*sandbox, 100);
        const auto inside = [&](uint64_t clock) {
            REQUIRE(process.call(SYS_clock_gettime, {clock, StubProcess::data_address()}) == 0);
            timespec time{};
            memcpy(&time, process.data(), sizeof(time));
            return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
        };
        const int64_t before = monotonic_ns();
        const int64_t there = inside(CLOCK_MONOTONIC) - offset;
        CHECK(before <= there);
        CHECK(there <= monotonic_ns());
        timespec boottime{};
        clock_gettime(CLOCK_BOOTTIME, &boottime);
        const int64_t boottime_before = int64_t{boottime.tv_sec} * 1'000'000'000 + boottime.tv_nsec;
        CHECK(boottime_before <= inside(CLOCK_BOOTTIME) - offset - 7'000'000'001);
    }
    const ClockSample theirs{0, 5'000, 9'000}, ours{0, 2'000, 2'500};
    CHECK(clock_offsets(theirs, ours).monotonic_ns == 3'000);
    CHECK(clock_offsets(theirs, ours).boottime_ns == 6'500);
}

TEST_CASE("what a peer says of itself cannot do harm") {
    SandboxOptions options;
    options.host_name = std::string(1000, 'x');
    auto sandbox = make_sandbox(options);
    auto process = make_process(*sandbox, 100);
    REQUIRE(process.call(SYS_uname, {StubProcess::data_address()}) == 0);
    utsname names{};
    memcpy(&names, process.data(), sizeof(names));
    CHECK(std::string(names.nodename) == std::string(64, 'x'));

    constexpr int64_t least = std::numeric_limits<int64_t>::min();
    for (const int64_t time : {least, least + 1, std::numeric_limits<int64_t>::max()}) {
        options.clock_offsets = clock_offsets({0, time, time}, sample_clocks());
        const auto refused = Sandbox::create(options);
        if (sandbox->has_time_namespace()) CHECK(!refused);
        if (!refused) CHECK(refused.error().message().find("clock offsets") != std::string::npos);
    }
}

TEST_CASE("the userfaultfd reports faults taken inside the kernel") {
    auto sandbox = make_sandbox();
    auto process = make_process(*sandbox, 100);
    const auto& uffd = process.process.uffd;
    REQUIRE(enable_userfaultfd(uffd, UFFD_FEATURE_THREAD_ID));
    const long area = process.call(
        SYS_mmap, {0, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~0UL, 0});
    REQUIRE(area > 0);
    uffdio_register range{};
    range.range = {static_cast<uint64_t>(area), page_size};
    range.mode = UFFDIO_REGISTER_MODE_MISSING;
    REQUIRE(ioctl(uffd.get(), UFFDIO_REGISTER, &range) == 0);

    uffd_msg message{};
    const long result = process.call(SYS_uname, {static_cast<uint64_t>(area)}, [&] {
        pollfd ready{uffd.get(), POLLIN, 0};
        REQUIRE(poll(&ready, 1, 10'000) == 1);
        REQUIRE(read(uffd.get(), &message, sizeof(message)) == sizeof(message));
        uffdio_zeropage zero{};
        zero.range = range.range;
        REQUIRE(ioctl(uffd.get(), UFFDIO_ZEROPAGE, &zero) == 0);
    });
    CHECK(result == 0);
    CHECK(int{message.event} == UFFD_EVENT_PAGEFAULT);
    CHECK((message.arg.pagefault.address & page_mask) == static_cast<uint64_t>(area));
    CHECK(uint32_t{message.arg.pagefault.feat.ptid} == 100);
}

TEST_CASE("the process lives on when all that it inherited is unmapped") {
    auto sandbox = make_sandbox();
    auto process = make_process(*sandbox, 100);
    const pid_t pid = process.process.host_pid;
    int unmapped = 0;
    for (const auto& mapping : process.process.mappings) {
        const auto begin = mapping.range.begin.value;
        if (begin == test::code_address || begin == test::mailbox_address) continue;
        if (mapping.name == "[vsyscall]") continue;
        REQUIRE(process.call(SYS_munmap, {begin, mapping.range.size()}) == 0);
        ++unmapped;
    }
    CHECK(unmapped > 5);
    CHECK(process.call(SYS_getpid) == 100);
    const auto left = read_inherited_mappings(pid);
    REQUIRE(left);
    std::set<uint64_t> begins;
    for (const auto& mapping : *left) {
        if (mapping.name != "[vsyscall]") begins.insert(mapping.range.begin.value);
    }
    CHECK(begins == std::set<uint64_t>{test::code_address, test::mailbox_address});
    // The kernel writes rseq's area, were there one, when the thread was preempted.
    CHECK(process.call(SYS_sched_yield) == 0);
    // Robust list and clear_child_tid are read at the end: a clean exit shows that it came through.
    process.start_call(SYS_exit_group, {7});
    int status = 0;
    REQUIRE(waitpid(pid, &status, __WALL) == pid);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 7);
}

TEST_CASE("signals and privileges are at their defaults") {
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, [](int) {});
    sigset_t blocked, old;
    sigfillset(&blocked);
    sigprocmask(SIG_BLOCK, &blocked, &old);
    auto sandbox = make_sandbox();
    auto process = make_process(*sandbox, 100);
    sigprocmask(SIG_SETMASK, &old, nullptr);
    signal(SIGUSR1, SIG_DFL);
    signal(SIGUSR2, SIG_DFL);

    const pid_t pid = process.process.host_pid;
    for (const char* field : {"SigIgn", "SigCgt", "SigBlk", "CapInh", "CapAmb"}) {
        CAPTURE(field);
        CHECK(status_field(pid, field) == "0000000000000000");
    }
    for (const char* field : {"CapPrm", "CapEff", "CapBnd"}) {
        CAPTURE(field);
        CHECK(std::stoull(status_field(pid, field), nullptr, 16) == 1UL << CAP_CHECKPOINT_RESTORE);
    }
    CHECK(status_field(pid, "NoNewPrivs") == "1");
    // Init holds a copy of the worker's memory.
    CHECK(process.call(SYS_ptrace, {PTRACE_SEIZE, 1, 0, 0}) == -EPERM);
    CHECK(process.call(SYS_kill, {1, SIGKILL}) == 0);
    CHECK(process.call(SYS_kill, {1, 0}) == 0);
}

TEST_CASE("the process can start others with chosen ids, and the stub's filter holds for them") {
    auto sandbox = make_sandbox();
    auto process = make_process(*sandbox, 100);
    clone_args arguments{};
    const pid_t wanted = 222;
    arguments.exit_signal = SIGCHLD;
    arguments.set_tid = StubProcess::data_address() + 512;
    arguments.set_tid_size = 1;
    memcpy(process.data(), &arguments, sizeof(arguments));
    memcpy(process.data() + 512, &wanted, sizeof(wanted));
    process.start_call(SYS_clone3, {StubProcess::data_address(), sizeof(arguments)});
    std::set<std::string> parked;
    for (int i = 0; i < 2; ++i) parked.insert(status_field(process.await_park(), "NSpid"));
    bool found = false;
    for (const auto& pids : parked) found |= pids.ends_with("\t222");
    CHECK(found);
}

TEST_CASE("an address that is taken in the worker is refused, not overwritten") {
    auto sandbox = make_sandbox();
    void* const taken = mmap(reinterpret_cast<void*>(test::mailbox_address), page_size, PROT_READ,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    REQUIRE(taken == reinterpret_cast<void*>(test::mailbox_address));
    const auto refused = StubProcess::spawn(*sandbox, 100);
    munmap(taken, page_size);
    REQUIRE(!refused);
    CHECK(refused.error().code == EEXIST);
    CHECK(refused.error().what.find("map the mailbox") != std::string::npos);
    CHECK(make_process(*sandbox, 100).call(SYS_getpid) == 100);
}

TEST_CASE("without privileges the reason is clear") {
    const pid_t child = fork();
    if (child == 0) {
        if (!keep_only_capabilities(0)) _exit(1);
        const auto sandbox = Sandbox::create({});
        _exit(!sandbox && sandbox.error().code == EPERM &&
                      sandbox.error().what.find("root") != std::string::npos
                  ? 0
                  : 2);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WEXITSTATUS(status) == 0);
}
