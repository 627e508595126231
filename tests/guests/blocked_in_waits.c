// Every call that waits for an event, a signal or a child waits for seconds, and then tells of it
// once. Some of these processes cannot be attached: they share memory with a child, or with the
// kernel; whoever attaches their parent leaves them alone.
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/stat.h>

#include "blocked.h"

enum { STATUS = 37 };

static char* program;

static char* name_of(struct wait* w, const char* what) {
    static __thread char name[64];
    snprintf(name, sizeof name, "%s-%d", what, w->index);
    return name;
}

static void data_is_there(struct wait* w) {
    char buffer[64];
    EXPECT_EQ(read(w->fds[0], buffer, sizeof buffer), DATA_SIZE);
    EXPECT(memcmp(buffer, BLOCKED_DATA, DATA_SIZE) == 0);
}

static void by_poll(struct wait* w) {
    struct pollfd two[2] = {{w->fds[1], POLLERR, 0}, {w->fds[0], POLLIN, 0}};
    EXPECT_EQ(poll(two, 2, -1), 1);
    EXPECT(two[0].revents == 0 && two[1].revents == POLLIN);
    data_is_there(w);
}
static void by_ppoll(struct wait* w) {
    struct pollfd one = {w->fds[0], POLLIN, 0};
    struct timespec limit = blocked_in_ms(100000);
    sigset_t all;
    sigfillset(&all);
    EXPECT_EQ(ppoll(&one, 1, &limit, &all), 1);
    EXPECT_EQ(one.revents, POLLIN);
    data_is_there(w);
    // Nothing of its mask stays.
    EXPECT_EQ(pthread_sigmask(SIG_SETMASK, NULL, &all), 0);
    EXPECT_EQ(sigismember(&all, SIGUSR1), 0);
}
static void by_select(struct wait* w) {
    struct timeval limit = {100, 0};
    fd_set reads, others;
    FD_ZERO(&reads);
    FD_ZERO(&others);
    FD_SET(w->fds[0], &reads);
    FD_SET(w->fds[0], &others);
    EXPECT_EQ(select(w->fds[0] + 1, &reads, NULL, &others, &limit), 1);
    EXPECT(FD_ISSET(w->fds[0], &reads) && !FD_ISSET(w->fds[0], &others));
    EXPECT(limit.tv_sec < 100);  // what was left of it
    data_is_there(w);
}
static void by_pselect(struct wait* w) {
    fd_set reads;
    sigset_t all;
    FD_ZERO(&reads);
    FD_SET(w->fds[0], &reads);
    sigfillset(&all);
    EXPECT_EQ(pselect(w->fds[0] + 1, &reads, NULL, NULL, NULL, &all), 1);
    EXPECT(FD_ISSET(w->fds[0], &reads));
    data_is_there(w);
    EXPECT_EQ(pthread_sigmask(SIG_SETMASK, NULL, &all), 0);
    EXPECT_EQ(sigismember(&all, SIGUSR1), 0);
}

// Edges and one event only; the set itself is watched by another one.
static void make_epoll(struct wait* w) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = 0x123456789abcULL};
    EXPECT_EQ(pipe(w->fds), 0);
    w->fds[2] = epoll_create1(0);
    EXPECT_EQ(epoll_ctl(w->fds[2], EPOLL_CTL_ADD, w->fds[0], &event), 0);
}
static void event_is(struct wait* w, int count, const struct epoll_event* event) {
    EXPECT_EQ(count, 1);
    EXPECT_EQ(event->events, EPOLLIN);
    EXPECT_EQ(event->data.u64, 0x123456789abcULL);
}
static void by_epoll(struct wait* w) {
    struct epoll_event events[4];
    event_is(w, epoll_wait(w->fds[2], events, 4, -1), events);
    EXPECT_EQ(epoll_wait(w->fds[2], events, 4, 0), 0);  // the edge is over
    data_is_there(w);
}
static void by_epoll_pwait(struct wait* w) {
    struct epoll_event events[4];
    sigset_t all;
    sigfillset(&all);
    event_is(w, epoll_pwait(w->fds[2], events, 4, 100000, &all), events);
    data_is_there(w);
    EXPECT_EQ(pthread_sigmask(SIG_SETMASK, NULL, &all), 0);
    EXPECT_EQ(sigismember(&all, SIGUSR1), 0);
}
static void by_epoll_pwait2(struct wait* w) {
    struct epoll_event events[4];
    struct timespec limit = blocked_in_ms(100000);
    event_is(w, (int)syscall(SYS_epoll_pwait2, w->fds[2], events, 4, &limit, NULL, 8), events);
    data_is_there(w);
}
static void by_nested_epoll(struct wait* w) {
    struct epoll_event events[4], event = {.events = EPOLLIN, .data.fd = 5};
    int outer = epoll_create1(0);
    EXPECT_EQ(epoll_ctl(outer, EPOLL_CTL_ADD, w->fds[2], &event), 0);
    EXPECT_EQ(epoll_wait(outer, events, 4, -1), 1);
    EXPECT_EQ(events->data.fd, 5);
    event_is(w, epoll_wait(w->fds[2], events, 4, 0), events);
    data_is_there(w);
}

// Of signals. Who waits has blocked them before it is ready.
static volatile sig_atomic_t handled, value;
static void on_signal(int number, siginfo_t* info, void* context) {
    handled++;
    value = info->si_value.sival_int;
}
static void handle(struct wait* w, int number) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    EXPECT_EQ(sigaction(number, &action, NULL), 0);
}
static void supply_signal(struct wait* w) {
    EXPECT_EQ(sigqueue(w->pid, SIGRTMIN + 2, (union sigval){.sival_int = 4711}), 0);
}
static void by_pause(struct wait* w) {
    handle(w, SIGRTMIN + 2);
    EXPECT_ERRNO(pause(), EINTR);
    EXPECT(handled == 1 && value == 4711);
}
static void by_sigsuspend(struct wait* w) {
    sigset_t blocked, now;
    handle(w, SIGRTMIN + 2);
    sigfillset(&blocked);
    EXPECT_EQ(sigprocmask(SIG_SETMASK, &blocked, NULL), 0);
    sigdelset(&blocked, SIGRTMIN + 2);
    EXPECT_ERRNO(sigsuspend(&blocked), EINTR);
    EXPECT(handled == 1 && value == 4711);
    EXPECT_EQ(sigprocmask(SIG_SETMASK, NULL, &now), 0);
    EXPECT_EQ(sigismember(&now, SIGRTMIN + 2), 1);
}
static void by_sigwaitinfo(struct wait* w) {
    sigset_t set;
    siginfo_t info = {0};
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 2);
    EXPECT_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
    EXPECT_EQ(sigwaitinfo(&set, &info), SIGRTMIN + 2);
    EXPECT_EQ(info.si_value.sival_int, 4711);
    EXPECT_EQ(info.si_pid, blocked_parent);
    EXPECT_EQ(sigpending(&set), 0);
    EXPECT_EQ(sigismember(&set, SIGRTMIN + 2), 0);
}
static void by_sigtimedwait(struct wait* w) {
    sigset_t set;
    struct timespec limit = blocked_in_ms(100000);
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 2);
    EXPECT_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
    EXPECT_EQ(sigtimedwait(&set, NULL, &limit), SIGRTMIN + 2);
}

// Of children, which end when the pipe has data for them.
static pid_t begin_child(struct wait* w) {
    pid_t pid = fork();
    if (pid != 0) return pid;
    char byte;
    if (read(w->fds[0], &byte, 1) != 1) _exit(1);
    if (byte == 's') raise(SIGSTOP);
    _exit(STATUS);
}
static void supply_byte(struct wait* w) { EXPECT_EQ(write(w->fds[1], "x", 1), 1); }
static void by_wait4(struct wait* w) {
    struct rusage {
        long values[18];
    } usage;
    int status = -1;
    pid_t pid = begin_child(w);
    EXPECT_EQ(syscall(SYS_wait4, pid, &status, 0, &usage), pid);
    EXPECT_EQ(WEXITSTATUS(status), STATUS);
    EXPECT_ERRNO(waitpid(pid, &status, 0), ECHILD);
}
static void by_wait_for_any(struct wait* w) {
    int status = -1;
    pid_t pid = begin_child(w);
    EXPECT_EQ(wait(&status), pid);
    EXPECT_EQ(WEXITSTATUS(status), STATUS);
    EXPECT_ERRNO(wait(&status), ECHILD);
}
static void exited(struct wait* w, idtype_t type, int id, pid_t pid, int options) {
    siginfo_t info = {0};
    EXPECT_EQ(waitid(type, (id_t)id, &info, WEXITED | options), 0);
    EXPECT_EQ(info.si_pid, pid);
    EXPECT_EQ(info.si_code, CLD_EXITED);
    EXPECT_EQ(info.si_status, STATUS);
}
static void by_waitid(struct wait* w) {
    pid_t pid = begin_child(w);
    exited(w, P_PID, pid, pid, WNOWAIT);
    exited(w, P_PID, pid, pid, 0);
}
static void by_waitid_of_group(struct wait* w) {
    EXPECT_EQ(setpgid(0, 0), 0);
    pid_t pid = begin_child(w);
    exited(w, P_PGID, getpid(), pid, 0);
}
static void by_waitid_of_pidfd(struct wait* w) {
    pid_t pid = begin_child(w);
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    EXPECT(fd >= 0);
    exited(w, P_PIDFD, fd, pid, 0);
    EXPECT_EQ(close(fd), 0);
}
static void by_poll_of_pidfd(struct wait* w) {
    pid_t pid = begin_child(w);
    struct pollfd one = {(int)syscall(SYS_pidfd_open, pid, 0), POLLIN, 0};
    EXPECT_EQ(poll(&one, 1, -1), 1);
    EXPECT_EQ(one.revents & POLLIN, POLLIN);
    exited(w, P_PID, pid, pid, WNOHANG);
}
static void supply_stop(struct wait* w) { EXPECT_EQ(write(w->fds[1], "s", 1), 1); }
static void by_waitid_of_stop(struct wait* w) {
    siginfo_t info = {0};
    pid_t pid = begin_child(w);
    EXPECT_EQ(waitid(P_PID, (id_t)pid, &info, WSTOPPED), 0);
    EXPECT_EQ(info.si_code, CLD_STOPPED);
    EXPECT_EQ(info.si_status, SIGSTOP);
    EXPECT_EQ(kill(pid, SIGCONT), 0);
    exited(w, P_PID, pid, pid, 0);
}

// The parent itself waits in vfork until its child ends, or executes.
static void by_vfork(struct wait* w) {
    static int status;
    pid_t pid = vfork();
    if (pid == 0) {
        char byte;
        status = (int)read(w->fds[0], &byte, 1);  // the memory is the parent's
        _exit(STATUS);
    }
    EXPECT(pid > 0);
    EXPECT_EQ(status, 1);
    exited(w, P_PID, pid, pid, 0);
}
static void by_vfork_until_exec(struct wait* w) {
    static int status;
    pid_t pid = vfork();
    if (pid == 0) {
        char byte;
        status = (int)read(w->fds[0], &byte, 1);
        execl(program, program, "ends", NULL);
        _exit(1);
    }
    EXPECT(pid > 0);
    EXPECT_EQ(status, 1);
    exited(w, P_PID, pid, pid, 0);
}
static void by_clone_vfork(struct wait* w) {
    long began_ms = blocked_now_ms();
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        char byte;
        _exit(read(w->fds[0], &byte, 1) == 1 ? STATUS : 1);
    }
    EXPECT(pid > 0);
    EXPECT(blocked_now_ms() - began_ms >= MIDWAY_MS);
    exited(w, P_PID, pid, pid, 0);
}

// A FIFO that nobody has open at the other end.
static void make_fifo(struct wait* w) { EXPECT_EQ(mkfifo(name_of(w, "fifo"), 0600), 0); }
static void remove_fifo(struct wait* w) { EXPECT_EQ(unlink(name_of(w, "fifo")), 0); }
static void open_to_read(struct wait* w) {
    int fd = open(name_of(w, "fifo"), O_RDONLY);
    EXPECT(fd >= 0);
    w->fds[0] = fd;
    data_is_there(w);
}
static void open_to_write(struct wait* w) {
    int fd = open(name_of(w, "fifo"), O_WRONLY | O_CLOEXEC);
    EXPECT(fd >= 0);
    EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    EXPECT_EQ(write(fd, BLOCKED_DATA, DATA_SIZE), DATA_SIZE);
}
static void supply_writer(struct wait* w) {
    EXPECT((w->fds[1] = open(name_of(w, "fifo"), O_WRONLY)) >= 0);
    blocked_supply_write(w);
}
static void supply_reader(struct wait* w) {
    EXPECT((w->fds[0] = open(name_of(w, "fifo"), O_RDONLY)) >= 0);
    data_is_there(w);
}

// Asynchronous requests that wait for the pipe.
static void by_getevents(struct wait* w) {
    aio_context_t context = 0;
    if (syscall(SYS_io_setup, 4, &context) != 0) {
        blocked_impossible(w);
        return;
    }
    struct iocb request = {.aio_lio_opcode = IOCB_CMD_POLL,
                           .aio_fildes = (uint32_t)w->fds[0],
                           .aio_buf = POLLIN,
                           .aio_data = 99};
    struct iocb* list[] = {&request};
    struct io_event event[2];
    EXPECT_EQ(syscall(SYS_io_submit, context, 1, list), 1);
    EXPECT_EQ(syscall(SYS_io_getevents, context, 1, 2, event, NULL), 1);
    EXPECT(event->data == 99 && (event->res & POLLIN));  // and what else the pipe woke with
    data_is_there(w);
    EXPECT_EQ(syscall(SYS_io_destroy, context), 0);
}
static void by_uring(struct wait* w) {
    struct io_uring_params params = {0};
    int ring = (int)syscall(SYS_io_uring_setup, 4, &params);
    if (ring < 0) {
        blocked_impossible(w);
        return;
    }
    size_t size = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    const int access = PROT_READ | PROT_WRITE;
    char* base = mmap(NULL, size, access, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    struct io_uring_sqe* entry = mmap(NULL, 4096, access, MAP_SHARED, ring, IORING_OFF_SQES);
    EXPECT(base != MAP_FAILED && entry != MAP_FAILED);
    char buffer[64] = {0};
    *entry = (struct io_uring_sqe){.opcode = IORING_OP_READ,
                                   .fd = w->fds[0],
                                   .addr = (uintptr_t)buffer,
                                   .len = sizeof buffer,
                                   .user_data = 98};
    ((unsigned*)(base + params.sq_off.array))[0] = 0;
    __atomic_store_n((unsigned*)(base + params.sq_off.tail), 1, __ATOMIC_RELEASE);
    // Interrupted after it has submitted something, it returns that and does not wait.
    EXPECT_EQ(syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0), 1);
    EXPECT_EQ(syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0), 0);
    EXPECT_EQ(*(unsigned*)(base + params.cq_off.tail), 1);
    struct io_uring_cqe* done = (struct io_uring_cqe*)(base + params.cq_off.cqes);
    EXPECT_EQ(done->user_data, 98);
    EXPECT_EQ(done->res, DATA_SIZE);
    EXPECT(memcmp(buffer, BLOCKED_DATA, DATA_SIZE) == 0);
}

#define ON_PIPE(name, places, block) \
    { name, places, blocked_make_pipe, block, NULL, blocked_supply_write, blocked_nothing_left }
#define ON_EPOLL(name, block) \
    { name, CHILD | OWN, make_epoll, block, NULL, blocked_supply_write, blocked_nothing_left }
#define ON_SIGNAL(name, block) \
    { name, OWN, NULL, block, NULL, supply_signal, NULL }
#define ON_CHILD(name, places, block, supply) \
    { name, places, blocked_make_pipe, block, NULL, supply, NULL }
static const struct kind kinds[] = {
    ON_PIPE("poll", EVERYWHERE, by_poll),
    ON_PIPE("ppoll", THREADS, by_ppoll),
    ON_PIPE("select", THREADS, by_select),
    ON_PIPE("pselect6", THREADS, by_pselect),
    ON_EPOLL("epoll_wait", by_epoll),
    ON_EPOLL("epoll_pwait", by_epoll_pwait),
    ON_EPOLL("epoll_pwait2", by_epoll_pwait2),
    ON_EPOLL("epoll_wait for another set", by_nested_epoll),
    ON_SIGNAL("pause", by_pause),
    ON_SIGNAL("sigsuspend", by_sigsuspend),
    ON_SIGNAL("sigwaitinfo", by_sigwaitinfo),
    ON_SIGNAL("sigtimedwait", by_sigtimedwait),
    ON_CHILD("wait4", CHILD | OWN, by_wait4, supply_byte),
    ON_CHILD("wait", OWN, by_wait_for_any, supply_byte),
    ON_CHILD("waitid", CHILD, by_waitid, supply_byte),
    ON_CHILD("waitid of a group", OWN, by_waitid_of_group, supply_byte),
    ON_CHILD("waitid of a pidfd", CHILD, by_waitid_of_pidfd, supply_byte),
    ON_CHILD("waitid of a stop", OWN, by_waitid_of_stop, supply_stop),
    ON_CHILD("poll of a pidfd", CHILD, by_poll_of_pidfd, supply_byte),
    ON_CHILD("vfork", OWN, by_vfork, supply_byte),
    ON_CHILD("vfork, until exec", OWN, by_vfork_until_exec, supply_byte),
    ON_CHILD("clone, CLONE_VFORK", OWN, by_clone_vfork, supply_byte),
    {"open of a FIFO to read", THREADS, make_fifo, open_to_read, NULL, supply_writer, remove_fifo},
    {"open of a FIFO to write", THREADS, make_fifo, open_to_write, NULL, supply_reader,
     remove_fifo},
    ON_PIPE("io_getevents", OWN, by_getevents),
    ON_PIPE("io_uring_enter", OWN, by_uring),
};

int main(int argc, char** argv) {
    if (argc == 2) return STATUS;
    program = argv[0];
    return blocked_run(kinds, sizeof kinds / sizeof *kinds);
}
