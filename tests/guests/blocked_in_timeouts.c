// Every call with a time limit waits until that is over, with the result that says so, and not
// earlier, whoever stops and moves it meanwhile. With the argument "late" it tells how much later
// each was, for people; that is never a failure here.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#include "blocked.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
// Of sockets the kernel counts in ticks, of which the first has begun already.
#define LIMIT_MS (2300 * blocked_times)
enum { TICK_MS = 11, CALL_FUTEX_WAIT = 455, SIZE_U32_PRIVATE = 0x82 };

static int tells_late;
static __thread long began_ms;  // before its end was computed

static void begin(void) {
    if (began_ms == 0) began_ms = blocked_now_ms();
}
static struct timespec limit(void) {
    begin();
    return blocked_in_ms(LIMIT_MS);
}
static struct timespec limit_at(clockid_t clock) {
    begin();
    return blocked_at(clock, LIMIT_MS);
}
static void lasted(struct wait* w, int tolerance_ms) {
    long ms = blocked_now_ms() - began_ms;
    EXPECT(ms >= LIMIT_MS - 1 - tolerance_ms);
    if (tells_late) fprintf(stderr, "%5ld ms late: %s\n", ms - LIMIT_MS, w->kind->name);
}

#define TIMED_OUT(call, result, tolerance_ms) \
    do {                                      \
        begin();                              \
        EXPECT_EQ((call), result);            \
        lasted(w, tolerance_ms);              \
    } while (0)
#define TIMED_OUT_ERRNO(call, error, tolerance_ms) \
    do {                                           \
        begin();                                   \
        EXPECT_ERRNO((call), error);               \
        lasted(w, tolerance_ms);                   \
    } while (0)

static void by_nanosleep(struct wait* w) {
    struct timespec time = limit();
    TIMED_OUT(nanosleep(&time, NULL), 0, 0);
}
static void by_clock(struct wait* w, clockid_t clock, int is_absolute) {
    struct timespec time = is_absolute ? limit_at(clock) : limit();
    TIMED_OUT(clock_nanosleep(clock, is_absolute ? TIMER_ABSTIME : 0, &time, NULL), 0, 0);
}
static void by_monotonic(struct wait* w) { by_clock(w, CLOCK_MONOTONIC, 0); }
static void by_monotonic_absolute(struct wait* w) { by_clock(w, CLOCK_MONOTONIC, 1); }
static void by_real_absolute(struct wait* w) { by_clock(w, CLOCK_REALTIME, 1); }
static void by_boot_time(struct wait* w) { by_clock(w, CLOCK_BOOTTIME, 1); }

static void by_poll(struct wait* w) {
    struct pollfd one = {w->fds[0], POLLIN, 5};
    TIMED_OUT(poll(&one, 1, LIMIT_MS), 0, 0);
    EXPECT_EQ(one.revents, 0);
}
static void by_ppoll(struct wait* w) {
    struct pollfd one = {w->fds[0], POLLIN, 5};
    struct timespec time = limit();
    TIMED_OUT(ppoll(&one, 1, &time, NULL), 0, 0);
}
static void by_poll_of_nothing(struct wait* w) { TIMED_OUT(poll(NULL, 0, LIMIT_MS), 0, 0); }
static void by_select(struct wait* w) {
    struct timeval time = {LIMIT_MS / 1000, LIMIT_MS % 1000 * 1000};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(w->fds[0], &set);
    TIMED_OUT(select(w->fds[0] + 1, &set, NULL, NULL, &time), 0, 0);
    EXPECT(!FD_ISSET(w->fds[0], &set));
    EXPECT(time.tv_sec == 0 && time.tv_usec == 0);
}
static void by_pselect(struct wait* w) {
    struct timespec time = limit();
    fd_set set;
    FD_ZERO(&set);
    FD_SET(w->fds[0], &set);
    TIMED_OUT(pselect(w->fds[0] + 1, &set, NULL, NULL, &time, NULL), 0, 0);
}
static void make_epoll(struct wait* w) {
    struct epoll_event event = {.events = EPOLLIN};
    EXPECT_EQ(pipe(w->fds), 0);
    w->fds[2] = epoll_create1(0);
    EXPECT_EQ(epoll_ctl(w->fds[2], EPOLL_CTL_ADD, w->fds[0], &event), 0);
}
static void by_epoll(struct wait* w) {
    struct epoll_event event;
    TIMED_OUT(epoll_wait(w->fds[2], &event, 1, LIMIT_MS), 0, 0);
}
static void by_epoll_pwait2(struct wait* w) {
    struct epoll_event event;
    struct timespec time = limit();
    TIMED_OUT(syscall(SYS_epoll_pwait2, w->fds[2], &event, 1, &time, NULL, 8), 0, 0);
}

static uint32_t own_words[MOST_WAITS][WORDS];
static uint32_t* word_of(struct wait* w) { return own_words[w->index]; }
static void by_futex(struct wait* w) {
    struct timespec time = limit();
    TIMED_OUT_ERRNO(syscall(SYS_futex, word_of(w), FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0),
                    ETIMEDOUT, 0);
}
static void by_shared_futex(struct wait* w) {
    struct timespec time = limit();
    TIMED_OUT_ERRNO(syscall(SYS_futex, w->words, FUTEX_WAIT, 0, &time, NULL, 0), ETIMEDOUT, 0);
}
static void until(struct wait* w, int operation, clockid_t clock) {
    struct timespec time = limit_at(clock);
    if (clock == CLOCK_REALTIME && operation == FUTEX_WAIT_BITSET)
        operation |= FUTEX_CLOCK_REALTIME;
    TIMED_OUT_ERRNO(syscall(SYS_futex, word_of(w), operation | FUTEX_PRIVATE_FLAG, word_of(w)[0],
                            &time, word_of(w) + 1, 1),
                    ETIMEDOUT, 0);
}
static void by_futex_bits(struct wait* w) { until(w, FUTEX_WAIT_BITSET, CLOCK_MONOTONIC); }
static void by_futex_bits_real(struct wait* w) { until(w, FUTEX_WAIT_BITSET, CLOCK_REALTIME); }
// Of the main thread, which does not give it away.
static void make_locked(struct wait* w) { word_of(w)[0] = (uint32_t)getpid(); }
static void by_lock_pi(struct wait* w) {
    until(w, FUTEX_LOCK_PI, CLOCK_REALTIME);
    EXPECT_EQ(word_of(w)[0] & FUTEX_TID_MASK, getpid());
}
static void by_lock_pi2(struct wait* w) { until(w, 13, CLOCK_MONOTONIC); }
static void by_requeue_pi(struct wait* w) { until(w, FUTEX_WAIT_REQUEUE_PI, CLOCK_MONOTONIC); }
static void by_waitv(struct wait* w) {
    struct {
        uint64_t value, address;
        uint32_t flags, reserved;
    } both[2] = {{0, (uintptr_t)word_of(w), SIZE_U32_PRIVATE, 0},
                 {0, (uintptr_t)(word_of(w) + 1), SIZE_U32_PRIVATE, 0}};
    struct timespec time = limit_at(CLOCK_MONOTONIC);
    TIMED_OUT_ERRNO(syscall(SYS_futex_waitv, both, 2, 0, &time, CLOCK_MONOTONIC), ETIMEDOUT, 0);
}
static void by_futex_wait(struct wait* w) {
    struct timespec time = limit_at(CLOCK_REALTIME);
    begin();
    long result = syscall(CALL_FUTEX_WAIT, word_of(w), 0, 1, SIZE_U32_PRIVATE, &time, 0);
    if (result == -1 && errno == ENOSYS) {
        blocked_impossible(w);
        return;
    }
    EXPECT_ERRNO(result, ETIMEDOUT);
    lasted(w, 0);
}

// Of the C library.
static void by_condition(struct wait* w) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    struct timespec time = limit_at(CLOCK_REALTIME);
    int result = 0;
    EXPECT_EQ(pthread_mutex_lock(&mutex), 0);
    begin();
    while (result == 0) result = pthread_cond_timedwait(&condition, &mutex, &time);
    EXPECT_EQ(result, ETIMEDOUT);
    lasted(w, 0);
    EXPECT_EQ(pthread_mutex_unlock(&mutex), 0);
}
static void by_mutex(struct wait* w) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    EXPECT_EQ(pthread_mutex_lock(&mutex), 0);
    struct timespec time = limit_at(CLOCK_REALTIME);
    TIMED_OUT(pthread_mutex_timedlock(&mutex, &time), ETIMEDOUT, 0);
}
static void by_semaphore(struct wait* w) {
    sem_t semaphore;
    EXPECT_EQ(sem_init(&semaphore, 0, 0), 0);
    struct timespec time = limit_at(CLOCK_REALTIME);
    TIMED_OUT_ERRNO(sem_timedwait(&semaphore, &time), ETIMEDOUT, 0);
}

static void by_sigtimedwait(struct wait* w) {
    struct timespec time = limit();
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 3);
    TIMED_OUT_ERRNO(sigtimedwait(&set, NULL, &time), EAGAIN, 0);
}
static void make_set(struct wait* w) { EXPECT((w->fds[0] = semget(IPC_PRIVATE, 1, 0600)) >= 0); }
static void remove_set(struct wait* w) { EXPECT_EQ(semctl(w->fds[0], 0, IPC_RMID), 0); }
static void by_semtimedop(struct wait* w) {
    struct timespec time = limit();
    struct sembuf take = {0, -1, 0};
    TIMED_OUT_ERRNO(semtimedop(w->fds[0], &take, 1, &time), EAGAIN, 0);
}
static void make_mq(struct wait* w) {
    struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 16};
    char name[64];
    snprintf(name, sizeof name, "/gpr-blocked-%d-%d", blocked_parent, w->index);
    w->fds[0] = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
    EXPECT(w->fds[0] >= 0);
    EXPECT_EQ(mq_unlink(name), 0);
}
static void make_full_mq(struct wait* w) {
    make_mq(w);
    EXPECT_EQ(mq_send(w->fds[0], "x", 1, 0), 0);
}
static void by_mq(struct wait* w) {
    char text[16];
    struct timespec time = limit_at(CLOCK_REALTIME);
    TIMED_OUT_ERRNO(mq_timedreceive(w->fds[0], text, sizeof text, NULL, &time), ETIMEDOUT, 0);
}
static void by_full_mq(struct wait* w) {
    struct timespec time = limit_at(CLOCK_REALTIME);
    TIMED_OUT_ERRNO(mq_timedsend(w->fds[0], "y", 1, 0, &time), ETIMEDOUT, 0);
    struct mq_attr attributes;
    EXPECT_EQ(mq_getattr(w->fds[0], &attributes), 0);
    EXPECT_EQ(attributes.mq_curmsgs, 1);
}

static struct timeval socket_limit(void) {
    return (struct timeval){LIMIT_MS / 1000, LIMIT_MS % 1000 * 1000};
}
static void limit_socket(struct wait* w, int option) {
    const struct timeval time = socket_limit();
    EXPECT_EQ(setsockopt(w->fds[0], SOL_SOCKET, option, &time, sizeof time), 0);
}
static void make_sockets(struct wait* w) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, w->fds), 0);
    limit_socket(w, SO_RCVTIMEO);
    limit_socket(w, SO_SNDTIMEO);
}
static void make_full_sockets(struct wait* w) {
    make_sockets(w);
    while (send(w->fds[0], "full", 4, MSG_DONTWAIT) == 4) continue;
}
static void by_recv(struct wait* w) {
    char byte;
    TIMED_OUT_ERRNO(recv(w->fds[0], &byte, 1, 0), EAGAIN, TICK_MS);
}
static void by_read_of_socket(struct wait* w) {
    char byte;
    TIMED_OUT_ERRNO(read(w->fds[0], &byte, 1), EAGAIN, TICK_MS);
}
static void by_send(struct wait* w) {
    TIMED_OUT_ERRNO(send(w->fds[0], "more", 4, 0), EAGAIN, TICK_MS);
}
static void make_listener(struct wait* w) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    w->fds[0] = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(bind(w->fds[0], (struct sockaddr*)&name, sizeof name), 0);
    EXPECT_EQ(listen(w->fds[0], 1), 0);
    limit_socket(w, SO_RCVTIMEO);
}
static void by_accept(struct wait* w) {
    TIMED_OUT_ERRNO(accept(w->fds[0], NULL, NULL), EAGAIN, TICK_MS);
}
static void by_connect(struct wait* w) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "gpr-blocked-%d", blocked_parent);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), first = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(bind(listener, (struct sockaddr*)&name, sizeof name), 0);
    EXPECT_EQ(listen(listener, 0), 0);
    EXPECT_EQ(connect(first, (struct sockaddr*)&name, sizeof name), 0);
    w->fds[0] = socket(AF_UNIX, SOCK_STREAM, 0);
    limit_socket(w, SO_SNDTIMEO);
    TIMED_OUT_ERRNO(connect(w->fds[0], (struct sockaddr*)&name, sizeof name), EAGAIN, TICK_MS);
}

// Timers.
static volatile sig_atomic_t handled;
static void on_signal(int number) { handled++; }
static void handle_alarm(struct wait* w) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    EXPECT_EQ(sigaction(SIGALRM, &action, NULL), 0);
}
static void by_interval_timer(struct wait* w) {
    handle_alarm(w);
    struct itimerval time = {.it_value = socket_limit()};
    begin();
    EXPECT_EQ(setitimer(ITIMER_REAL, &time, NULL), 0);
    EXPECT_ERRNO(pause(), EINTR);
    lasted(w, 0);
    EXPECT_EQ(handled, 1);
}
static void by_posix_timer(struct wait* w) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 3};
    struct itimerspec time = {.it_value = limit_at(CLOCK_MONOTONIC)};
    event.sigev_value.sival_int = 42;
    timer_t timer;
    siginfo_t info;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 3);
    EXPECT_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    EXPECT_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    EXPECT_EQ(timer_settime(timer, TIMER_ABSTIME, &time, NULL), 0);
    EXPECT_EQ(sigwaitinfo(&set, &info), SIGRTMIN + 3);
    lasted(w, 0);
    EXPECT(info.si_code == SI_TIMER && info.si_value.sival_int == 42 && info.si_overrun == 0);
}
static void make_timer_fd(struct wait* w) {
    EXPECT((w->fds[0] = timerfd_create(CLOCK_MONOTONIC, 0)) >= 0);
}
static void by_timer_fd(struct wait* w) {
    struct itimerspec time = {.it_value = limit(), .it_interval = {100, 0}};
    uint64_t count = 0;
    begin();
    EXPECT_EQ(timerfd_settime(w->fds[0], 0, &time, NULL), 0);
    EXPECT_EQ(read(w->fds[0], &count, sizeof count), 8);
    lasted(w, 0);
    EXPECT_EQ(count, 1);
}

// Requests of rings.
static void by_getevents(struct wait* w) {
    aio_context_t context = 0;
    struct timespec time = limit();
    struct io_event event;
    if (syscall(SYS_io_setup, 4, &context) != 0) {
        blocked_impossible(w);
        return;
    }
    TIMED_OUT(syscall(SYS_io_getevents, context, 1, 1, &event, &time), 0, 0);
}
static void by_uring(struct wait* w) {
    struct io_uring_params params = {0};
    int ring = (int)syscall(SYS_io_uring_setup, 4, &params);
    if (ring < 0) {
        blocked_impossible(w);
        return;
    }
    struct __kernel_timespec time = {LIMIT_MS / 1000, LIMIT_MS % 1000 * 1000000};
    struct io_uring_getevents_arg argument = {.ts = (uintptr_t)&time};
    const unsigned flags = IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG;
    TIMED_OUT_ERRNO(syscall(SYS_io_uring_enter, ring, 0, 1, flags, &argument, sizeof argument),
                    ETIME, 0);
}

// Stopped and continued soon, from where most go on with restart_syscall(2).
static void stop_soon(struct wait* w) {
    pid_t waits = getpid(), helper = fork();
    EXPECT(helper >= 0);
    if (helper > 0) return;
    blocked_sleep(150);
    kill(waits, SIGSTOP);
    blocked_sleep(20);
    kill(waits, SIGCONT);
    _exit(0);
}
static void stopped(struct wait* w, blocked_step step) {
    int status = -1;
    stop_soon(w);
    step(w);
    EXPECT(wait(&status) > 0);
    EXPECT_EQ(status, 0);
}
static void by_stopped_nanosleep(struct wait* w) { stopped(w, by_nanosleep); }
static void by_stopped_monotonic(struct wait* w) { stopped(w, by_monotonic); }
static void by_stopped_poll(struct wait* w) { stopped(w, by_poll); }
static void by_stopped_select(struct wait* w) { stopped(w, by_select); }
static void by_stopped_futex(struct wait* w) { stopped(w, by_futex); }

static const struct kind kinds[] = {
#define LIMITED(name, places, make, block) \
    { name, places, make, block, NULL, NULL, NULL }
    LIMITED("nanosleep", EVERYWHERE, NULL, by_nanosleep),
    LIMITED("clock_nanosleep", THREADS, NULL, by_monotonic),
    LIMITED("clock_nanosleep, absolute", THREADS, NULL, by_monotonic_absolute),
    LIMITED("clock_nanosleep, absolute, real time", THREADS, NULL, by_real_absolute),
    LIMITED("clock_nanosleep, absolute, boot time", CHILD, NULL, by_boot_time),
    LIMITED("poll", THREADS, blocked_make_pipe, by_poll),
    LIMITED("poll of nothing", PARENT, NULL, by_poll_of_nothing),
    LIMITED("ppoll", THREADS, blocked_make_pipe, by_ppoll),
    LIMITED("select", THREADS, blocked_make_pipe, by_select),
    LIMITED("pselect6", THREADS, blocked_make_pipe, by_pselect),
    LIMITED("epoll_wait", CHILD, make_epoll, by_epoll),
    LIMITED("epoll_pwait2", CHILD, make_epoll, by_epoll_pwait2),
    LIMITED("futex", THREADS, NULL, by_futex),
    LIMITED("futex, shared", THREADS, NULL, by_shared_futex),
    LIMITED("futex with bits", THREADS, NULL, by_futex_bits),
    LIMITED("futex with bits, real time", THREADS, NULL, by_futex_bits_real),
    LIMITED("FUTEX_LOCK_PI", PARENT, make_locked, by_lock_pi),
    LIMITED("FUTEX_LOCK_PI2", PARENT, make_locked, by_lock_pi2),
    LIMITED("FUTEX_WAIT_REQUEUE_PI", THREADS, NULL, by_requeue_pi),
    LIMITED("futex_waitv", THREADS, NULL, by_waitv),
    LIMITED("futex_wait", THREADS, NULL, by_futex_wait),
    LIMITED("pthread_cond_timedwait", THREADS, NULL, by_condition),
    LIMITED("pthread_mutex_timedlock", THREADS, NULL, by_mutex),
    LIMITED("sem_timedwait", THREADS, NULL, by_semaphore),
    LIMITED("sigtimedwait", CHILD, NULL, by_sigtimedwait),
    {"semtimedop", CHILD, make_set, by_semtimedop, NULL, NULL, remove_set},
    LIMITED("mq_timedreceive", THREADS, make_mq, by_mq),
    LIMITED("mq_timedsend", CHILD, make_full_mq, by_full_mq),
    LIMITED("recv", CHILD, make_sockets, by_recv),
    LIMITED("read of a socket", CHILD, make_sockets, by_read_of_socket),
    LIMITED("send", CHILD, make_full_sockets, by_send),
    LIMITED("accept", CHILD, make_listener, by_accept),
    LIMITED("connect", CHILD, NULL, by_connect),
    LIMITED("setitimer and pause", OWN, NULL, by_interval_timer),
    LIMITED("timer_settime and sigwaitinfo", OWN, NULL, by_posix_timer),
    LIMITED("read of a timerfd", THREADS, make_timer_fd, by_timer_fd),
    LIMITED("io_getevents", OWN, NULL, by_getevents),
    LIMITED("io_uring_enter", OWN, NULL, by_uring),
    LIMITED("nanosleep after a stop", OWN, NULL, by_stopped_nanosleep),
    LIMITED("clock_nanosleep after a stop", OWN, NULL, by_stopped_monotonic),
    LIMITED("poll after a stop", OWN, blocked_make_pipe, by_stopped_poll),
    LIMITED("select after a stop", OWN, blocked_make_pipe, by_stopped_select),
    LIMITED("futex after a stop", OWN, NULL, by_stopped_futex),
};

int main(int argc, char** argv) {
    tells_late = argc > 1 && strcmp(argv[1], "late") == 0;
    return blocked_run(kinds, sizeof kinds / sizeof *kinds);
}
