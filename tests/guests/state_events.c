// Descriptors that tell of events keep what they watch, count and have not told yet.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

#include "state.h"

enum { INTERVAL_MS = 200 };

static int event_fd, semaphore_fd;
static void set_events(void) {
    event_fd = eventfd(41, EFD_NONBLOCK);
    semaphore_fd = eventfd(2, EFD_NONBLOCK | EFD_SEMAPHORE);
    EXPECT(event_fd >= 0 && semaphore_fd >= 0);
}
static void has_events(void) {
    eventfd_t value = 0;
    EXPECT_EQ(eventfd_read(event_fd, &value), 0);
    EXPECT_EQ(value, 41);
    is_empty(event_fd);
    for (int i = 0; i < 2; i++) {
        EXPECT_EQ(eventfd_read(semaphore_fd, &value), 0);
        EXPECT_EQ(value, 1);
    }
    is_empty(semaphore_fd);
}

static int periodic_fd, far_fd, real_fd;
static long timers_begin_ms;
static void set_timers(void) {
    struct itimerspec often = {{0, INTERVAL_MS * 1000000L}, {0, INTERVAL_MS * 1000000L}};
    struct itimerspec far = {{7, 5}, {5000, 0}}, real = {{0, 0}, {0, 0}};
    periodic_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    far_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    real_fd = timerfd_create(CLOCK_REALTIME, 0);
    EXPECT_EQ(clock_gettime(CLOCK_REALTIME, &real.it_value), 0);
    real.it_value.tv_sec += 1;
    EXPECT_EQ(timerfd_settime(periodic_fd, 0, &often, NULL), 0);
    timers_begin_ms = state_ms();
    EXPECT_EQ(timerfd_settime(far_fd, 0, &far, NULL), 0);
    EXPECT_EQ(timerfd_settime(real_fd, TFD_TIMER_ABSTIME, &real, NULL), 0);
}
static void timer_counts(void) {
    uint64_t count = 0;
    long periods = (state_ms() - timers_begin_ms) / INTERVAL_MS;
    EXPECT_EQ(read(periodic_fd, &count, sizeof count), 8);
    EXPECT((long)count >= periods - 1);
    struct itimerspec now;
    EXPECT_EQ(timerfd_gettime(periodic_fd, &now), 0);
    EXPECT_EQ(now.it_interval.tv_nsec, INTERVAL_MS * 1000000L);
}
static void timer_is_armed(void) {
    struct itimerspec now;
    EXPECT_EQ(timerfd_gettime(far_fd, &now), 0);
    EXPECT(now.it_interval.tv_sec == 7 && now.it_interval.tv_nsec == 5);
    EXPECT(now.it_value.tv_sec > 3000 && now.it_value.tv_sec < 5000);
}
static void timer_has_expired(void) {
    uint64_t count = 0;
    struct pollfd one = {real_fd, POLLIN, 0};
    EXPECT_EQ(poll(&one, 1, 10000), 1);
    EXPECT_EQ(read(real_fd, &count, sizeof count), 8);
    EXPECT_EQ(count, 1);
}

static int watch_fd, watch_file, watch_folder;
static void set_watch(void) {
    EXPECT((watch_fd = inotify_init1(IN_CLOEXEC)) >= 0);
    EXPECT_EQ(close(creat("watched", 0600)), 0);
    watch_file = inotify_add_watch(watch_fd, "watched", IN_OPEN | IN_DELETE_SELF);
    watch_folder = inotify_add_watch(watch_fd, ".", IN_DELETE | IN_ONLYDIR);
    EXPECT_EQ(watch_folder, watch_file + 1);
    EXPECT_EQ(close(open("watched", O_RDONLY)), 0);  // which stays unread
}
static void watches(void) {
    char buffer[4000];
    EXPECT_EQ(unlink("watched"), 0);
    int events = 0, masks = 0, deleted = 0;
    ssize_t size = read(watch_fd, buffer, sizeof buffer);
    for (ssize_t at = 0; at < size; events++) {
        struct inotify_event* event = (struct inotify_event*)(buffer + at);
        if (event->wd == watch_file) masks |= (int)event->mask;
        if (event->wd == watch_folder && event->mask == IN_DELETE)
            deleted += strcmp(event->name, "watched") == 0;
        at += (ssize_t)(sizeof *event + event->len);
    }
    EXPECT(((struct inotify_event*)buffer)->mask == IN_OPEN);  // the first
    EXPECT(masks & IN_DELETE_SELF);
    EXPECT_EQ(deleted, 1);
    EXPECT_EQ(inotify_rm_watch(watch_fd, watch_folder), 0);
}

static int fan_fd;
static void set_fanotify(void) {
    POSSIBLE((fan_fd = fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK, O_RDONLY)) >= 0);
    EXPECT_EQ(close(creat("marked", 0600)), 0);
    POSSIBLE(fanotify_mark(fan_fd, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, "marked") == 0);
    EXPECT_EQ(close(open("marked", O_RDONLY)), 0);
}
static void fanotify_tells(void) {
    struct fanotify_event_metadata event[4];
    EXPECT_EQ(read(fan_fd, event, sizeof event), FAN_EVENT_METADATA_LEN);
    EXPECT_EQ(event->mask, FAN_OPEN);
    EXPECT_EQ(event->pid, getpid());
    EXPECT_EQ(close(event->fd), 0);
    EXPECT_EQ(close(fan_fd), 0);
    EXPECT_EQ(unlink("marked"), 0);
}

static int epoll_fd, outer_fd, watched[3];
static void set_epoll(void) {
    const uint32_t kinds[3] = {EPOLLIN, EPOLLIN | EPOLLET, EPOLLIN | EPOLLONESHOT};
    struct epoll_event got[4];
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    outer_fd = epoll_create1(0);
    for (unsigned i = 0; i < 3; i++) {
        struct epoll_event event = {.events = kinds[i], .data.u64 = 0x100000000ULL + i};
        watched[i] = eventfd(1, 0);
        EXPECT_EQ(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, watched[i], &event), 0);
    }
    struct epoll_event inner = {.events = EPOLLIN, .data.u64 = 9};
    EXPECT_EQ(epoll_ctl(outer_fd, EPOLL_CTL_ADD, epoll_fd, &inner), 0);
    EXPECT_EQ(epoll_wait(epoll_fd, got, 4, 0), 3);  // uses up the edge and the one shot
}
static void has_epoll(void) {
    struct epoll_event got[4] = {0}, again = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = 77};
    EXPECT_EQ(epoll_wait(outer_fd, got, 4, 0), 1);
    EXPECT_EQ(got->data.u64, 9);
    EXPECT_EQ(epoll_wait(epoll_fd, got, 4, 0), 1);
    EXPECT_EQ(got->data.u64, 0x100000000ULL);
    EXPECT_EQ(eventfd_write(watched[1], 1), 0);
    EXPECT_EQ(eventfd_write(watched[2], 1), 0);
    EXPECT_EQ(epoll_wait(epoll_fd, got, 4, 0), 2);  // the edge again, but no other shot
    EXPECT_EQ(epoll_ctl(epoll_fd, EPOLL_CTL_MOD, watched[2], &again), 0);
    EXPECT_EQ(epoll_wait(epoll_fd, got, 4, 0), 2);
    EXPECT_EQ(got[0].data.u64 + got[1].data.u64, 0x100000000ULL + 77);
    EXPECT_ERRNO(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, watched[0], &again), EEXIST);
}

static int child_fd;
static pid_t child;
static void set_pidfd(void) {
    child = fork();
    if (child == 0) pause();
    EXPECT((child_fd = (int)syscall(SYS_pidfd_open, child, 0)) >= 0);
}
static void has_pidfd(void) {
    struct pollfd one = {child_fd, POLLIN, 0};
    int status = 0;
    EXPECT_EQ(poll(&one, 1, 0), 0);
    EXPECT_EQ(syscall(SYS_pidfd_send_signal, child_fd, SIGTERM, NULL, 0), 0);
    EXPECT_EQ(poll(&one, 1, -1), 1);
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, SIGTERM);
}

static int owned_pipes[2];
static void set_owner(void) {
    struct f_owner_ex owner = {F_OWNER_TID, (pid_t)syscall(SYS_gettid)};
    EXPECT_EQ(pipe(owned_pipes), 0);
    EXPECT_EQ(fcntl(owned_pipes[0], F_SETOWN_EX, &owner), 0);
    EXPECT_EQ(fcntl(owned_pipes[0], F_SETSIG, SIGRTMIN + 5), 0);
    EXPECT_EQ(fcntl(owned_pipes[0], F_SETFL, O_ASYNC), 0);
}
static void has_owner(void) {
    struct f_owner_ex owner = {0};
    sigset_t set;
    siginfo_t info;
    EXPECT_EQ(fcntl(owned_pipes[0], F_GETOWN_EX, &owner), 0);
    EXPECT(owner.type == F_OWNER_TID && owner.pid == getpid());
    EXPECT_EQ(fcntl(owned_pipes[0], F_GETSIG), SIGRTMIN + 5);
    EXPECT_EQ(fcntl(owned_pipes[0], F_GETFL), O_RDONLY | O_ASYNC);
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 5);
    EXPECT_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
    EXPECT_EQ(write(owned_pipes[1], "x", 1), 1);
    EXPECT_EQ(sigwaitinfo(&set, &info), SIGRTMIN + 5);
    EXPECT(info.si_fd == owned_pipes[0] && info.si_code == POLL_IN);
}

static int signal_fd;
static void set_signalfd(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 6);
    EXPECT_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
    EXPECT((signal_fd = signalfd(-1, &set, SFD_NONBLOCK)) >= 0);
    EXPECT_EQ(sigqueue(getpid(), SIGRTMIN + 6, (union sigval){.sival_int = 815}), 0);
}
static void has_signalfd(void) {
    struct signalfd_siginfo info;
    EXPECT_EQ(read(signal_fd, &info, sizeof info), sizeof info);
    EXPECT(info.ssi_signo == (unsigned)SIGRTMIN + 6 && info.ssi_int == 815);
    is_empty(signal_fd);
}

static const struct kind kinds[] = {
    {"eventfd", set_events, has_events},
    {"timerfd that repeats", set_timers, timer_counts},
    {"timerfd that is armed", NULL, timer_is_armed},
    {"timerfd of real time", NULL, timer_has_expired},
    {"signalfd", set_signalfd, has_signalfd},
    {"inotify", set_watch, watches},
    {"fanotify", set_fanotify, fanotify_tells},
    {"epoll", set_epoll, has_epoll},
    {"pidfd", set_pidfd, has_pidfd},
    {"owner and signal", set_owner, has_owner},
};

int main(void) { return state_run(kinds, sizeof kinds / sizeof *kinds); }
