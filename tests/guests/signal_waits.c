// Every call that waits (signal(7), "Interruption of system calls"), with its time limit and
// without: signals that are ignored do not end it, nor make it wait longer; a handler ends it, with
// SA_RESTART or in any case; a stop ends some.
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

enum { TIME_MS = 40, TOO_LONG_MS = 8000 };
// What a process beside us does until it is told otherwise.
enum { NOTHING, IGNORED, CHILD_DIES, HANDLED, STOPS, HANDLED_AND_WAKES };
static volatile struct {
    int what, done, call, rounds;
    uint32_t word;
} * other;
static int epoll, pipes[2], sockets[2], timed[2], full[2], listener, semaphore, queue, event, watch;
static aio_context_t aio;
static mqd_t messages;
static char buffer[1 << 16];

static struct timespec in_ms(int ms) { return (struct timespec){ms / 1000, ms % 1000 * 1000000}; }
static const struct timespec* limit(int ms) {
    static struct timespec time;
    time = in_ms(ms);
    return ms < 0 ? NULL : &time;
}
static struct epoll_event events[4];
static sigset_t waited;

static long by_epoll(int ms) { return epoll_wait(epoll, events, 4, ms); }
static long by_epoll_p(int ms) { return epoll_pwait(epoll, events, 4, ms, &waited); }
static long by_epoll_p2(int ms) {
    return syscall(SYS_epoll_pwait2, epoll, events, 4, limit(ms), NULL, 8);
}
static long by_semop(int ms) {
    struct sembuf take = {0, -1, 0};
    return ms < 0 ? semop(semaphore, &take, 1) : semtimedop(semaphore, &take, 1, limit(ms));
}
static long by_sigtimedwait(int ms) { return sigtimedwait(&waited, NULL, limit(ms)); }
static long by_getevents(int ms) {
    struct io_event done[2];
    return syscall(SYS_io_getevents, aio, 1, 2, done, limit(ms));
}
static long by_recv(int ms) {
    struct timeval time = {ms / 1000, ms % 1000 * 1000};
    if (ms > 0) setsockopt(timed[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    return recv(ms < 0 ? sockets[0] : timed[0], buffer, 10, 0);
}
static long by_read_of_socket(int ms) {
    by_recv(0);
    struct timeval time = {ms / 1000, ms % 1000 * 1000};
    if (ms > 0) setsockopt(timed[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    return read(ms < 0 ? sockets[0] : timed[0], buffer, 10);
}
static long by_send(int ms) {
    struct timeval time = {ms / 1000, ms % 1000 * 1000};
    setsockopt(full[0], SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
    return send(full[0], buffer, sizeof buffer, 0);
}
static long by_accept(int ms) {
    struct timeval time = {ms / 1000, ms % 1000 * 1000};
    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    return accept(listener, NULL, NULL);
}
static long by_poll(int ms) {
    struct pollfd p = {pipes[0], POLLIN, 0};
    return poll(&p, 1, ms);
}
static long by_ppoll(int ms) {
    struct pollfd p = {pipes[0], POLLIN, 0};
    return ppoll(&p, 1, limit(ms), NULL);
}
static long by_select(int ms) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(pipes[0], &set);
    struct timeval time = {ms / 1000, ms % 1000 * 1000};
    return select(pipes[0] + 1, &set, NULL, NULL, ms < 0 ? NULL : &time);
}
static long by_nanosleep(int ms) { return nanosleep(limit(ms), NULL); }
static long by_futex(int ms) {
    return syscall(SYS_futex, &other->word, FUTEX_WAIT, 0, limit(ms), NULL, 0);
}
static long by_mq(int ms) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    long long ns = at.tv_nsec + ms * 1000000LL;
    at.tv_sec += ns / 1000000000;
    at.tv_nsec = ns % 1000000000;
    return ms < 0 ? mq_receive(messages, buffer, 100, NULL)
                  : mq_timedreceive(messages, buffer, 100, NULL, &at);
}
static long by_pipe(int ms) { return read(pipes[0], buffer, 1); }
static long by_eventfd(int ms) { return read(event, buffer, 8); }
static long by_inotify(int ms) { return read(watch, buffer, 1000); }
static long by_msgrcv(int ms) { return msgrcv(queue, buffer, 100, 0, 0); }
static long by_pause(int ms) { return pause(); }
static long by_sigsuspend(int ms) {
    sigset_t none;
    sigemptyset(&none);
    return sigsuspend(&none);
}

static void wake_pipe(void) { CHECK_EQ(write(pipes[1], "x", 1), 1); }
static void wake_socket(void) { CHECK_EQ(send(sockets[1], "x", 1, 0), 1); }
static void wake_event(void) { CHECK_EQ(write(event, "\1\0\0\0\0\0\0", 8), 8); }
static void wake_queue(void) { CHECK_EQ(mq_send(messages, "x", 1, 0), 0); }
static void wake_inotify(void) { CHECK_EQ(close(open("watched", O_WRONLY)), 0); }
static void wake_futex(void) { syscall(SYS_futex, &other->word, FUTEX_WAKE, 1, NULL, NULL, 0); }

static const struct call {
    const char* name;
    long (*make)(int ms);
    int has_limit, has_no_limit;
    int ends_by_stop;
    void (*wake)(void);  // one that a handler with SA_RESTART does not end, if it has no limit
} calls[] = {
    {"epoll_wait", by_epoll, 1, 1, 1, NULL},
    {"epoll_pwait", by_epoll_p, 1, 1, 1, NULL},
    {"epoll_pwait2", by_epoll_p2, 1, 1, 1, NULL},
    {"semop", by_semop, 1, 1, 1, NULL},
    {"sigtimedwait", by_sigtimedwait, 1, 1, 1, NULL},
    {"io_getevents", by_getevents, 1, 1, 1, NULL},
    {"recv", by_recv, 1, 1, 0, wake_socket},
    {"read of a socket", by_read_of_socket, 1, 0, 1, NULL},
    {"send", by_send, 1, 0, 1, NULL},
    {"accept", by_accept, 1, 0, 1, NULL},
    {"poll", by_poll, 1, 1, 0, NULL},
    {"ppoll", by_ppoll, 1, 1, 0, NULL},
    {"select", by_select, 1, 1, 0, NULL},
    {"nanosleep", by_nanosleep, 1, 0, 0, NULL},
    {"futex", by_futex, 1, 1, 0, wake_futex},
    {"mq_receive", by_mq, 1, 1, 0, wake_queue},
    {"read of a pipe", by_pipe, 0, 1, 0, wake_pipe},
    {"read of an eventfd", by_eventfd, 0, 1, 0, wake_event},
    {"read of inotify", by_inotify, 0, 1, 0, wake_inotify},
    {"msgrcv", by_msgrcv, 0, 1, 0, NULL},
    {"pause", by_pause, 0, 1, 0, NULL},
    {"sigsuspend", by_sigsuspend, 0, 1, 0, NULL},
};
enum { CALLS = sizeof calls / sizeof *calls };

static long ms_since(struct timespec begin) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000;
}

static void act(pid_t parent) {
    switch (other->what) {
        case IGNORED:
            kill(parent, SIGUSR1);
            kill(parent, SIGWINCH);
            break;
        case CHILD_DIES: kill(parent, SIGCHLD); break;
        case HANDLED: kill(parent, SIGUSR2); break;
        case HANDLED_AND_WAKES:
            if (other->done < 3) {
                kill(parent, SIGUSR2);
            } else {
                calls[other->call].wake();
                // It may have waked nobody, of which nothing is left.
                if (calls[other->call].wake != wake_futex) other->what = NOTHING;
            }
            break;
        case STOPS:
            kill(parent, SIGSTOP);
            usleep(3000);
            kill(parent, SIGCONT);
            break;
        default: return;
    }
    other->done++;
}

static void be_the_other(pid_t parent) {
    while (getppid() == parent) {
        usleep(5000);
        act(parent);
        other->rounds++;
    }
    _exit(0);
}

// Nothing of what it did before comes after this.
static void let_other(int what) {
    other->what = NOTHING;
    for (int rounds = other->rounds; other->rounds < rounds + 2;) usleep(1000);
    other->done = 0;
    other->what = what;
}

static const char* result_of(long result) {
    static char text[64];
    snprintf(text, sizeof text, "%ld%s%s", result, result < 0 ? ", " : "",
             result < 0 ? strerrorname_np(errno) : "");
    return text;
}

// Not before its time, and long before the signals end.
static void with_limit(const struct call* c, int what) {
    let_other(what);
    struct timespec begin;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    long result = c->make(TIME_MS);
    int error = errno;
    long took = ms_since(begin);
    let_other(NOTHING);
    errno = error;
    const char* by = what == IGNORED ? "ignored" : what == STOPS ? "stopped" : "ignored by default";
    printf("  %s: %s%s%s\n", by, result_of(result), took < TIME_MS - 1 ? ", too early" : "",
           took > TOO_LONG_MS ? ", too late" : "");
}

static volatile int handled;
static void on_signal(int signal) { handled++; }

static void handle(int flags) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = flags};
    CHECK_EQ(sigaction(SIGUSR2, &action, NULL), 0);
}

// Without a limit, or a very long one.
static void ended_by(const struct call* c, const char* by, int what) {
    let_other(what);
    long result = c->make(c->has_no_limit ? -1 : 100000);
    int error = errno;
    let_other(NOTHING);
    errno = error;
    printf("  %s: %s\n", by, result_of(result));
}

static void set_up(void) {
    CHECK_EQ(pipe(pipes), 0);
    epoll = epoll_create1(0);
    struct epoll_event in = {.events = EPOLLIN};
    CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0], &in), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, timed), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, full), 0);
    while (send(full[0], buffer, sizeof buffer, MSG_DONTWAIT) > 0) {
    }
    listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CHECK_EQ(bind(listener, (struct sockaddr*)&any, sizeof any), 0);
    CHECK_EQ(listen(listener, 1), 0);
    semaphore = semget(IPC_PRIVATE, 1, 0600);
    CHECK(semaphore >= 0);
    queue = msgget(IPC_PRIVATE, 0600);
    CHECK(queue >= 0);
    event = eventfd(0, 0);
    watch = inotify_init();
    CHECK(event >= 0 && watch >= 0);
    int file = creat("watched", 0600);
    CHECK_EQ(close(file), 0);
    CHECK(inotify_add_watch(watch, "watched", IN_CLOSE_WRITE) >= 0);
    CHECK_EQ(syscall(SYS_io_setup, 4, &aio), 0);
    char name[64];
    snprintf(name, sizeof name, "/gpr-signal-waits-%d", getpid());
    struct mq_attr attributes = {.mq_maxmsg = 2, .mq_msgsize = 100};
    messages = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
    CHECK(messages >= 0);
    CHECK_EQ(mq_unlink(name), 0);
    sigemptyset(&waited);
    sigaddset(&waited, SIGRTMAX);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &waited, NULL), 0);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    CHECK_EQ(sigaction(SIGUSR1, &ignore, NULL), 0);
    handle(0);
}

int main(void) {
    other = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(other != MAP_FAILED);
    set_up();
    pid_t parent = getpid(), pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) be_the_other(parent);
    for (const struct call* c = calls; c < calls + CALLS; c++) {
        printf("%s\n", c->name);
        if (c->has_limit) with_limit(c, IGNORED);
        if (c->has_limit) with_limit(c, CHILD_DIES);
        handle(0);
        ended_by(c, "handled", HANDLED);
        handle(SA_RESTART);
        other->call = (int)(c - calls);
        ended_by(c, "handled, SA_RESTART", c->wake ? HANDLED_AND_WAKES : HANDLED);
        if (c->ends_by_stop) ended_by(c, "stopped", STOPS);
        if (c->has_limit && !c->ends_by_stop && c->make != by_recv) with_limit(c, STOPS);
        fflush(stdout);
    }
    CHECK(handled > 0);
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    CHECK_EQ(semctl(semaphore, 0, IPC_RMID), 0);
    CHECK_EQ(msgctl(queue, IPC_RMID, NULL), 0);
    return guest_passed();
}
