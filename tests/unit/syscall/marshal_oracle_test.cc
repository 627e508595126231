#include <dirent.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "oracle.h"

namespace gpr {
namespace {

using namespace oracle;

TEST_CASE("oracle: files and names") {
    Both<struct stat> stats;
    CHECK(forwarded(SYS_stat, "/etc/passwd", &stats.by_forward) == 0);
    CHECK(direct(SYS_stat, "/etc/passwd", &stats.by_direct) == 0);
    CHECK(stats.agree());
    CHECK(forwarded(SYS_stat, "/no/such/file", &stats.by_forward) == -ENOENT);
    CHECK(stats.agree());
    Both<struct statx> extended;
    CHECK(forwarded(SYS_statx, AT_FDCWD, "/", 0, STATX_ALL, &extended.by_forward) == 0);
    CHECK(direct(SYS_statx, AT_FDCWD, "/", 0, STATX_ALL, &extended.by_direct) == 0);
    CHECK(extended.agree());
    Both<struct statfs> fs;
    CHECK(forwarded(SYS_statfs, "/proc", &fs.by_forward) == 0);
    CHECK(direct(SYS_statfs, "/proc", &fs.by_direct) == 0);
    CHECK(fs.agree());
    Both<std::array<char, 300>> texts;
    CHECK(forwarded(SYS_readlink, "/proc/self/exe", &texts.by_forward, 300) ==
          direct(SYS_readlink, "/proc/self/exe", &texts.by_direct, 300));
    CHECK(texts.agree());
    CHECK(forwarded(SYS_getcwd, &texts.by_forward, 300) ==
          direct(SYS_getcwd, &texts.by_direct, 300));
    CHECK(texts.agree());
    CHECK(forwarded(SYS_getcwd, &texts.by_forward, 1) == -ERANGE);
    CHECK(forwarded(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", &texts.by_forward, 4) == 4);
}

TEST_CASE("oracle: directories") {
    Fd a(open("/proc/sys", O_RDONLY | O_DIRECTORY)), b(open("/proc/sys", O_RDONLY | O_DIRECTORY));
    Both<std::array<char, 2000>> entries;
    long got = forwarded(SYS_getdents64, a.get(), &entries.by_forward, 2000);
    CHECK(got > 0);
    CHECK(got == direct(SYS_getdents64, b.get(), &entries.by_direct, 2000));
    // Record by record: the kernel leaves the padding after a name as it was.
    for (long at = 0; at < got;) {
        auto* f = reinterpret_cast<dirent64*>(entries.by_forward.data() + at);
        auto* d = reinterpret_cast<dirent64*>(entries.by_direct.data() + at);
        CHECK(std::string_view(f->d_name) == d->d_name);
        CHECK(f->d_ino == d->d_ino);
        REQUIRE(f->d_reclen == d->d_reclen);
        REQUIRE(f->d_reclen > 0);
        at += f->d_reclen;
    }
    CHECK(entries.by_forward[static_cast<size_t>(got)] == 0x5a);
}

TEST_CASE("oracle: reading and writing, plain and in vectors") {
    Pipe p;
    char text[] = "0123456789";
    CHECK(forwarded(SYS_write, p.in.get(), text, 10) == 10);
    iovec out[3]{{text, 3}, {nullptr, 0}, {text + 5, 4}};
    CHECK(forwarded(SYS_writev, p.in.get(), out, 3) == 7);
    Both<std::array<char, 40>> buffers;
    CHECK(forwarded(SYS_read, p.out.get(), &buffers.by_forward, 5) == 5);
    CHECK(std::string_view(buffers.by_forward.data(), 6) == "01234Z");
    char x[4] = "...", y[20] = "...................";
    iovec in[2]{{x, 3}, {y, 19}};
    CHECK(forwarded(SYS_readv, p.out.get(), in, 2) == 12);
    CHECK(std::string_view(x) == "567");
    CHECK(std::string_view(y, 10) == "890125678.");
    Fd file(open("/etc/passwd", O_RDONLY));
    CHECK(forwarded(SYS_pread64, file.get(), &buffers.by_forward, 40, 2) ==
          direct(SYS_pread64, file.get(), &buffers.by_direct, 40, 2));
    CHECK(buffers.agree());
    CHECK(forwarded(SYS_read, -1, &buffers.by_forward, 40) == -EBADF);
    CHECK(buffers.agree());
    CHECK(forwarded(SYS_read, p.out.get(), &buffers.by_forward, 0) == 0);
    off_t offset = 3;
    CHECK(forwarded(SYS_sendfile, p.in.get(), file.get(), &offset, 10) == 10);
    CHECK(offset == 13);
    loff_t from = 5;
    CHECK(forwarded(SYS_splice, file.get(), &from, p.in.get(), nullptr, 4, 0) == 4);
    CHECK(from == 9);
}

TEST_CASE("oracle: waiting for descriptors") {
    Pipe p;
    REQUIRE(write(p.in.get(), "x", 1) == 1);
    pollfd fds[2]{{p.out.get(), POLLIN, 99}, {p.in.get(), POLLIN, 99}};
    CHECK(forwarded(SYS_poll, fds, 2, 0) == 1);
    CHECK(fds[0].revents == POLLIN);
    CHECK(fds[1].revents == 0);
    timespec little{0, 1'000'000};
    sigset_t set;
    sigemptyset(&set);
    fds[0].revents = 0;
    CHECK(forwarded(SYS_ppoll, fds, 2, &little, &set, 8) == 1);
    CHECK(fds[0].revents == POLLIN);
    fd_set reads, writes;
    FD_ZERO(&reads);
    FD_ZERO(&writes);
    FD_SET(p.out.get(), &reads);
    FD_SET(p.out.get(), &writes);
    timeval wait{10, 0};
    int n = p.in.get() + 1;
    CHECK(forwarded(SYS_select, n, &reads, &writes, nullptr, &wait) == 1);
    CHECK(FD_ISSET(p.out.get(), &reads));
    CHECK_FALSE(FD_ISSET(p.out.get(), &writes));
    struct {
        const sigset_t* set;
        size_t size;
    } pair{&set, 8};
    timespec zero{0, 1000};
    FD_SET(p.in.get(), &reads);
    CHECK(forwarded(SYS_pselect6, n, &reads, nullptr, nullptr, &zero, &pair) == 1);
    CHECK_FALSE(FD_ISSET(p.in.get(), &reads));
    FD_CLR(p.out.get(), &reads);
    CHECK(forwarded(SYS_pselect6, n, &reads, nullptr, nullptr, &zero, &pair) == 0);
    CHECK(zero.tv_nsec == 0);
}

TEST_CASE("oracle: epoll") {
    Pipe p;
    REQUIRE(write(p.in.get(), "x", 1) == 1);
    Fd epoll(epoll_create1(0));
    epoll_event event{EPOLLIN, {.u64 = 0x1122334455667788}};
    CHECK(forwarded(SYS_epoll_ctl, epoll.get(), EPOLL_CTL_ADD, p.out.get(), &event) == 0);
    Both<std::array<epoll_event, 4>> events;
    CHECK(forwarded(SYS_epoll_wait, epoll.get(), &events.by_forward, 4, 0) == 1);
    CHECK(direct(SYS_epoll_wait, epoll.get(), &events.by_direct, 4, 0) == 1);
    CHECK(events.agree());
    CHECK(uint64_t{events.by_forward[0].data.u64} == 0x1122334455667788);
}

TEST_CASE("oracle: terminals") {
    int controller = -1, terminal = -1;
    if (openpty(&controller, &terminal, nullptr, nullptr, nullptr) != 0) {
        MESSAGE("skipped: no pseudo terminals here");
        return;
    }
    Fd c(controller), t(terminal);
    winsize size{25, 80, 1, 2}, seen{};
    CHECK(forwarded(SYS_ioctl, t.get(), TIOCSWINSZ, &size) == 0);
    CHECK(forwarded(SYS_ioctl, t.get(), TIOCGWINSZ, &seen) == 0);
    CHECK(same(size, seen));
    Both<std::array<char, 60>> settings;
    CHECK(forwarded(SYS_ioctl, t.get(), TCGETS, &settings.by_forward) == 0);
    CHECK(direct(SYS_ioctl, t.get(), TCGETS, &settings.by_direct) == 0);
    CHECK(settings.agree());
    CHECK(forwarded(SYS_ioctl, t.get(), TCSETS, &settings.by_forward) == 0);
    REQUIRE(write(c.get(), "typed\n", 6) == 6);
    // The line discipline gets it from a work queue.
    pollfd arrival{t.get(), POLLIN, 0};
    REQUIRE(poll(&arrival, 1, 10'000) == 1);
    int waiting = 0;
    CHECK(forwarded(SYS_ioctl, t.get(), FIONREAD, &waiting) == 0);
    CHECK(waiting == 6);
    Pipe p;
    CHECK(forwarded(SYS_ioctl, p.out.get(), TCGETS, &settings.by_forward) == -ENOTTY);
    CHECK(settings.agree());
}

TEST_CASE("oracle: locks, names, identity, limits") {
    Fd file(memfd_create("locked", 0));
    struct flock lock {};
    lock.l_type = F_WRLCK;
    CHECK(forwarded(SYS_fcntl, file.get(), F_OFD_SETLK, &lock) == 0);
    struct flock probe {};
    probe.l_type = F_RDLCK;
    CHECK(forwarded(SYS_fcntl, file.get(), F_GETLK, &probe) == 0);
    CHECK(probe.l_type == F_WRLCK);
    char name[17] = "................";
    CHECK(forwarded(SYS_prctl, PR_SET_NAME, "marshalled") == 0);
    CHECK(forwarded(SYS_prctl, PR_GET_NAME, name) == 0);
    CHECK(std::string_view(name) == "marshalled");
    CHECK(name[15] == '\0');
    Both<utsname> system;
    CHECK(forwarded(SYS_uname, &system.by_forward) == 0);
    CHECK(direct(SYS_uname, &system.by_direct) == 0);
    CHECK(system.agree());
    struct Capabilities {
        __user_cap_header_struct header;
        __user_cap_data_struct data[2];
        int guard;
    };
    for (uint32_t version :
         std::array<uint32_t, 3>{_LINUX_CAPABILITY_VERSION_1, _LINUX_CAPABILITY_VERSION_3, 0}) {
        Both<Capabilities> c;
        c.by_forward.header = c.by_direct.header = {version, 0};
        CHECK(forwarded(SYS_capget, &c.by_forward.header, &c.by_forward.data) ==
              direct(SYS_capget, &c.by_direct.header, &c.by_direct.data));
        CHECK(c.agree());
    }
    Both<std::array<gid_t, 70>> groups;
    long count = forwarded(SYS_getgroups, 64, &groups.by_forward);
    CHECK(count == direct(SYS_getgroups, 64, &groups.by_direct));
    CHECK(groups.agree());
    CHECK(forwarded(SYS_getgroups, 0, nullptr) == count);
    Both<rlimit> limit;
    CHECK(forwarded(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit.by_forward) == 0);
    CHECK(direct(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit.by_direct) == 0);
    CHECK(limit.agree());
    Both<std::array<uid_t, 3>> ids;
    auto &f = ids.by_forward, &d = ids.by_direct;
    CHECK(forwarded(SYS_getresuid, &f[0], &f[1], &f[2]) == 0);
    CHECK(direct(SYS_getresuid, &d[0], &d[1], &d[2]) == 0);
    CHECK(ids.agree());
}

TEST_CASE("oracle: children and signals") {
    pid_t pid = fork();
    if (pid == 0) _exit(7);
    siginfo_t info;
    std::memset(&info, 0x5a, sizeof info);
    rusage usage{};
    CHECK(forwarded(SYS_waitid, P_PID, pid, &info, WEXITED | WNOWAIT, &usage) == 0);
    CHECK(info.si_pid == pid);
    CHECK(info.si_status == 7);
    CHECK(usage.ru_maxrss > 0);
    int status = -1;
    CHECK(forwarded(SYS_wait4, pid, &status, 0, &usage) == pid);
    CHECK(WEXITSTATUS(status) == 7);
    status = -1;
    pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    CHECK(forwarded(SYS_wait4, pid, &status, WNOHANG, nullptr) == 0);
    CHECK(status == -1);
    kill(pid, SIGKILL);
    CHECK(forwarded(SYS_wait4, pid, &status, 0, nullptr) == pid);
    CHECK(WTERMSIG(status) == SIGKILL);

    sigset_t usr, old, pending;
    sigemptyset(&usr);
    sigaddset(&usr, SIGUSR1);
    std::memset(&old, 0x5a, sizeof old);
    CHECK(forwarded(SYS_rt_sigprocmask, SIG_BLOCK, &usr, &old, 8) == 0);
    raise(SIGUSR1);
    std::memset(&pending, 0x5a, sizeof pending);
    CHECK(forwarded(SYS_rt_sigpending, &pending, 8) == 0);
    CHECK(sigismember(&pending, SIGUSR1) == 1);
    CHECK(reinterpret_cast<uint64_t*>(&pending)[1] == 0x5a5a5a5a5a5a5a5a);
    timespec none{0, 0};
    CHECK(forwarded(SYS_rt_sigtimedwait, &usr, &info, &none, 8) == SIGUSR1);
    CHECK(info.si_pid == getpid());
    CHECK(forwarded(SYS_rt_sigtimedwait, &usr, &info, &none, 8) == -EAGAIN);
    CHECK(forwarded(SYS_rt_sigprocmask, SIG_SETMASK, &old, nullptr, 8) == 0);
}

TEST_CASE("oracle: an interrupted wait says how long was left") {
    struct sigaction quiet {
    }, before{};
    quiet.sa_handler = [](int) {};
    REQUIRE(sigaction(SIGALRM, &quiet, &before) == 0);
    // Again and again: the first may come before the wait has begun.
    itimerval soon{{0, 20'000}, {0, 20'000}}, never{};
    CHECK(forwarded(SYS_setitimer, ITIMER_REAL, &soon, nullptr) == 0);
    timespec long_time{100, 0}, left{-1, -1};
    CHECK(forwarded(SYS_nanosleep, &long_time, &left) == -EINTR);
    CHECK(left.tv_sec >= 0);
    CHECK(left.tv_sec < 100);
    timeval wait{100, 0};
    CHECK(forwarded(SYS_select, 0, nullptr, nullptr, nullptr, &wait) == -EINTR);
    CHECK(wait.tv_sec < 100);
    CHECK(forwarded(SYS_setitimer, ITIMER_REAL, &never, &soon) == 0);
    CHECK(soon.it_interval.tv_usec == 20'000);
    sigaction(SIGALRM, &before, nullptr);
}

TEST_CASE("oracle: queues") {
    long queue = msgget(IPC_PRIVATE, 0600);
    if (queue < 0) {
        MESSAGE("skipped: no System V message queues here");
        return;
    }
    struct {
        long type;
        char text[16];
    } sent{5, "queued text"}, received{};
    std::memset(&received, 0x5a, sizeof received);
    CHECK(forwarded(SYS_msgsnd, queue, &sent, 11, 0) == 0);
    CHECK(forwarded(SYS_msgrcv, queue, &received, 16, 0, 0) == 11);
    CHECK(received.type == 5);
    CHECK(std::string_view(received.text, 12) == "queued textZ");
    CHECK(forwarded(SYS_msgrcv, queue, &received, 16, 0, IPC_NOWAIT) == -ENOMSG);
    msgctl(static_cast<int>(queue), IPC_RMID, nullptr);
}

TEST_CASE("oracle: pointers that are not mapped are left to the kernel") {
    OwnMemory memory;
    char* page = static_cast<char*>(
        mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(page != MAP_FAILED);
    munmap(page + 4096, 4096);
    auto outcome = marshal(SYS_write, {1, word(page + 4090), 100}, memory);
    CHECK(std::holds_alternative<RawCall>(outcome));
    outcome = marshal(SYS_open, {word(page + 4096), 0, 0}, memory);
    CHECK(std::holds_alternative<RawCall>(outcome));
    std::memcpy(page + 4091, "/etc", 5);
    Fd directory(static_cast<int>(forwarded(SYS_open, page + 4091, O_RDONLY, 0)));
    CHECK(directory);
    munmap(page, 4096);
}

}  // namespace
}  // namespace gpr
