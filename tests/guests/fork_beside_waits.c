// Threads wait, in every way there is, while another one forks again and again: no wait is
// interrupted, and those with a limit last as long as they should.
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "guest.h"

enum { LIMIT_MS = 300 };

static int quiet_pipe[2], epoll, quiet_socket[2], event_fd, notify, sysv_sem, sysv_queue;
static uint32_t word, words[2];
static sem_t semaphore;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static const struct timespec limit = {0, LIMIT_MS * 1000000L};

static struct timespec absolute(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += LIMIT_MS * 1000000L;
    if (t.tv_nsec >= 1000000000L) {
        t.tv_nsec -= 1000000000L;
        t.tv_sec++;
    }
    return t;
}

static long by_poll(void) {
    struct pollfd fd = {quiet_pipe[0], POLLIN, 0};
    return poll(&fd, 1, LIMIT_MS);
}
static long by_ppoll(void) {
    struct pollfd fd = {quiet_pipe[0], POLLIN, 0};
    sigset_t none;
    sigemptyset(&none);
    return ppoll(&fd, 1, &limit, &none);
}
static long by_select(void) {
    struct timeval time = {0, LIMIT_MS * 1000};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(quiet_pipe[0], &set);
    return select(quiet_pipe[0] + 1, &set, NULL, NULL, &time);
}
static long by_pselect(void) {
    sigset_t none;
    sigemptyset(&none);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(quiet_pipe[0], &set);
    return pselect(quiet_pipe[0] + 1, &set, NULL, NULL, &limit, &none);
}
static long by_epoll(void) {
    struct epoll_event event;
    return epoll_wait(epoll, &event, 1, LIMIT_MS);
}
static long by_epoll_pwait(void) {
    struct epoll_event event;
    sigset_t none;
    sigemptyset(&none);
    return epoll_pwait(epoll, &event, 1, LIMIT_MS, &none);
}
static long by_nanosleep(void) { return nanosleep(&limit, NULL); }
static long by_clock(void) {
    struct timespec until = absolute(CLOCK_MONOTONIC);
    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}
static long by_futex(void) {
    return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &limit, NULL, 0);
}
static long by_futex_bitset(void) {
    struct timespec until = absolute(CLOCK_MONOTONIC);
    return syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &until, NULL, 1);
}
static long by_waitv(void) {
    struct {
        uint64_t value, address;
        uint32_t flags, reserved;
    } both[2] = {{0, (uintptr_t)&words[0], 0x82, 0}, {0, (uintptr_t)&words[1], 0x82, 0}};
    struct timespec until = absolute(CLOCK_MONOTONIC);
    return syscall(449, both, 2, 0, &until, CLOCK_MONOTONIC);
}
static long by_lock_pi(void) {
    struct timespec until = absolute(CLOCK_REALTIME);
    static uint32_t lock;
    lock = (uint32_t)getpid();  // the main thread's
    return syscall(SYS_futex, &lock, FUTEX_LOCK_PI_PRIVATE, 0, &until, NULL, 0);
}
static long by_semaphore(void) {
    struct timespec until = absolute(CLOCK_REALTIME);
    return sem_timedwait(&semaphore, &until);
}
static long by_condition(void) {
    struct timespec until = absolute(CLOCK_REALTIME);
    pthread_mutex_lock(&mutex);
    int result = pthread_cond_timedwait(&condition, &mutex, &until);
    pthread_mutex_unlock(&mutex);
    errno = result;
    return -1;
}
static long by_sigtimedwait(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    return sigtimedwait(&set, NULL, &limit);
}
static long by_receive(void) {
    char byte;
    return recv(quiet_socket[0], &byte, 1, 0);
}
static long by_read_socket(void) {
    char byte;
    return read(quiet_socket[0], &byte, 1);
}
static long by_receive_many(void) {
    char byte;
    struct iovec part = {&byte, 1};
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    return recvmmsg(quiet_socket[0], &message, 1, 0, NULL);
}
static long by_semtimedop(void) {
    struct sembuf take = {0, -1, 0};
    return semtimedop(sysv_sem, &take, 1, &limit);
}
static long by_accept(void) {
    static int listener = -1;
    struct timeval time = {0, LIMIT_MS * 1000};
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr family = {.sa_family = AF_UNIX};
    bind(listener, &family, sizeof family.sa_family);
    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    listen(listener, 1);
    long result = accept(listener, NULL, NULL);
    int error = errno;
    close(listener);
    errno = error;
    return result;
}
// The queue of the listener has room for one.
static long by_connect(void) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t length = sizeof name;
    struct timeval time = {0, LIMIT_MS * 1000};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), first = socket(AF_UNIX, SOCK_STREAM, 0);
    int second = socket(AF_UNIX, SOCK_STREAM, 0);
    bind(listener, (struct sockaddr*)&name, sizeof name.sun_family);  // gets a name
    getsockname(listener, (struct sockaddr*)&name, &length);
    listen(listener, 0);
    connect(first, (struct sockaddr*)&name, length);
    setsockopt(second, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
    long result = connect(second, (struct sockaddr*)&name, length);
    int error = errno;
    close(second);
    close(first);
    close(listener);
    errno = error;
    return result;
}
static long by_timer_fd(void) {
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec time = {.it_value = limit};
    timerfd_settime(fd, 0, &time, NULL);
    uint64_t count = 0;
    long result = read(fd, &count, sizeof count);
    close(fd);
    return result;
}
static long by_queue(void) {
    struct {
        long type;
        char text[8];
    } message;
    return msgrcv(sysv_queue, &message, sizeof message.text, 1, 0);
}
static long by_pipe(void) {
    char byte;
    return read(quiet_pipe[0], &byte, 1);
}
static long by_event(void) {
    uint64_t count;
    return read(event_fd, &count, sizeof count);
}
static long by_notify(void) {
    char event[512];
    return read(notify, event, sizeof event) > 0;
}
static long by_child(void) {
    pid_t child = fork();
    if (child == 0) {
        usleep(LIMIT_MS * 1000);
        _exit(7);
    }
    int status;
    return waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : -1;
}
static long by_pause_of_sleep(void) { return (long)sleep(1); }

static struct {
    const char* name;
    long (*wait)(void);
    pthread_t thread;
    long result;
    int error, long_enough;
} waits[] = {
    {"poll", by_poll},
    {"ppoll", by_ppoll},
    {"select", by_select},
    {"pselect", by_pselect},
    {"epoll_wait", by_epoll},
    {"epoll_pwait", by_epoll_pwait},
    {"nanosleep", by_nanosleep},
    {"clock_nanosleep", by_clock},
    {"futex", by_futex},
    {"futex bitset", by_futex_bitset},
    {"futex_waitv", by_waitv},
    {"lock_pi", by_lock_pi},
    {"sem_timedwait", by_semaphore},
    {"pthread_cond_timedwait", by_condition},
    {"sigtimedwait", by_sigtimedwait},
    {"recv", by_receive},
    {"read of a socket", by_read_socket},
    {"recvmmsg", by_receive_many},
    {"semtimedop", by_semtimedop},
    {"accept", by_accept},
    {"connect", by_connect},
    {"timerfd", by_timer_fd},
    {"waitpid", by_child},
    {"sleep", by_pause_of_sleep},
    {"msgrcv", by_queue},
    {"read of a pipe", by_pipe},
    {"eventfd", by_event},
    {"inotify", by_notify},
};
enum { WAITS = sizeof waits / sizeof waits[0], ENDED = 4 };  // the last ones are ended by main

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void* wait_for_it(void* which) {
    long i = (long)(intptr_t)which;
    double begun = now();
    errno = 0;
    waits[i].result = waits[i].wait();
    waits[i].error = waits[i].result < 0 ? errno : 0;
    waits[i].long_enough = now() - begun > LIMIT_MS * 1e-3 - 0.01;
    return NULL;
}

int main(void) {
    CHECK_EQ(pipe(quiet_pipe), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, quiet_socket), 0);
    struct timeval time = {0, LIMIT_MS * 1000};
    CHECK_EQ(setsockopt(quiet_socket[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time), 0);
    epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, quiet_pipe[0], &event), 0);
    event_fd = eventfd(0, 0);
    notify = inotify_init();
    CHECK(inotify_add_watch(notify, ".", IN_CREATE) >= 0);
    sysv_sem = semget(IPC_PRIVATE, 1, 0600);
    sysv_queue = msgget(IPC_PRIVATE, 0600);
    CHECK(sysv_sem >= 0 && sysv_queue >= 0);
    sem_init(&semaphore, 0, 0);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    for (intptr_t i = 0; i < WAITS; i++) {
        CHECK_EQ(pthread_create(&waits[i].thread, NULL, wait_for_it, (void*)i), 0);
    }
    double begun = now();
    for (int i = 0; i < 8 || now() < begun + LIMIT_MS * 1e-3 * 1.5; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) _exit(i & 127);
        int status;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(WEXITSTATUS(status), i & 127);
        usleep(10000);
    }
    struct {
        long type;
        char text[8];
    } message = {1, "message"};
    CHECK_EQ(msgsnd(sysv_queue, &message, sizeof message.text, 0), 0);
    uint64_t one = 1;
    CHECK_EQ(write(event_fd, &one, sizeof one), 8);
    CHECK_EQ(close(open("created", O_CREAT | O_RDWR, 0600)), 0);
    CHECK_EQ(write(quiet_pipe[1], "x", 1), 1);
    for (int i = 0; i < WAITS; i++) {
        CHECK_EQ(pthread_join(waits[i].thread, NULL), 0);
        printf("%s: %ld, errno %d%s\n", waits[i].name, waits[i].result, waits[i].error,
               waits[i].long_enough ? "" : ", too early");
    }
    semctl(sysv_sem, 0, IPC_RMID);
    msgctl(sysv_queue, IPC_RMID, NULL);
    return guest_passed();
}
