// timerfd_create(2), timerfd_settime and timerfd_gettime.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>

#include "manual.h"

static void errors(void) {
    struct itimerspec times = {{0, 0}, {1, 0}};
    TRY(timerfd_create(99, 0));
    TRY(timerfd_create(CLOCK_MONOTONIC_RAW, 0));
    TRY(timerfd_create(CLOCK_PROCESS_CPUTIME_ID, 0));
    TRY(timerfd_create(CLOCK_MONOTONIC, 0x1));
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    TRY(fcntl(fd, F_GETFD));
    TRY(fcntl(fd, F_GETFL) & O_NONBLOCK);
    TRY(timerfd_settime(-1, 0, &times, NULL));
    TRY(timerfd_settime(1, 0, &times, NULL) == -1 && (errno == EINVAL || errno == EBADF));
    TRY(timerfd_settime(fd, 0x8, &times, NULL));
    TRY(timerfd_settime(fd, 0, NULL, NULL));
    TRY(timerfd_settime(fd, 0, (struct itimerspec*)manual_bad_pointer(), NULL));
    TRY(timerfd_settime(fd, 0, &times, (struct itimerspec*)manual_bad_pointer()));
    times.it_value.tv_nsec = 1000000000;
    TRY(timerfd_settime(fd, 0, &times, NULL));
    times.it_value = (struct timespec){-1, 0};
    TRY(timerfd_settime(fd, 0, &times, NULL));
    TRY(timerfd_gettime(fd, (struct itimerspec*)manual_bad_pointer()));
    TRY(timerfd_gettime(-1, &times));
    uint64_t count;
    TRY(read(fd, &count, 8));
    TRY(read(fd, &count, 7));
    TRY(read(fd, manual_bad_pointer(), 8));
    TRY(write(fd, &count, 8));
    TRY(lseek(fd, 0, SEEK_SET));
    TRY(pread(fd, &count, 8, 0));
}

static void clocks_and_limits(void) {
    struct itimerspec times = {{0, 0}, {1000, 0}};
    int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
    times.it_value.tv_sec = time(NULL) + 1000;
    TRY(timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &times, NULL));
    TRY(read(fd, &(uint64_t){0}, 8));
    TRY(timerfd_settime(fd, TFD_TIMER_CANCEL_ON_SET, &times, NULL));  // means nothing so
    TRY_OK(timerfd_create(CLOCK_REALTIME_ALARM, 0));
    TRY_OK(timerfd_create(CLOCK_BOOTTIME_ALARM, 0));
    manual_become_nobody();
    TRY(timerfd_create(CLOCK_REALTIME_ALARM, 0));
    TRY(timerfd_create(CLOCK_BOOTTIME_ALARM, 0));
    TRY(timerfd_settime(fd, TFD_TIMER_ABSTIME, &times, NULL));
    struct rlimit none = {3, 3};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    TRY(timerfd_create(CLOCK_MONOTONIC, 0));
}

static void expirations(void) {
    const int clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME};
    for (int i = 0; i < 3; i++) {
        int fd = timerfd_create(clocks[i], TFD_NONBLOCK);
        struct itimerspec times = {{0, 2000000}, {0, 2000000}}, old;
        TRY(timerfd_settime(fd, 0, &times, &old));
        SAY("was %ld %ld", (long)old.it_value.tv_sec, old.it_value.tv_nsec);
        struct pollfd waits = {fd, POLLIN, 0};
        TRY(poll(&waits, 1, 5000));
        usleep(20000);
        uint64_t count = 0;
        TRY(read(fd, &count, 8));
        SAY("several: %d", count >= 5);
        TRY(timerfd_gettime(fd, &old));
        SAY("%d %ld", old.it_value.tv_nsec <= 2000000, old.it_interval.tv_nsec);
        times = (struct itimerspec){{0, 0}, {0, 0}};
        TRY(timerfd_settime(fd, 0, &times, NULL));
        TRY(read(fd, &count, 8));
        // Absolute, in the past: at once, and only once.
        times.it_value.tv_nsec = 1;
        TRY(timerfd_settime(fd, TFD_TIMER_ABSTIME, &times, NULL));
        TRY(poll(&waits, 1, 5000));
        TRY(read(fd, &count, 8));
        SAY("%lu", (unsigned long)count);
        close(fd);
    }
}

static void shared(void) {
    int fd = timerfd_create(CLOCK_MONOTONIC, 0), copy = dup(fd);
    struct itimerspec times = {{0, 0}, {0, 10000000}};
    TRY(timerfd_settime(copy, 0, &times, NULL));
    if (fork() == 0) {
        uint64_t count = 0;
        TRY(read(fd, &count, 8));  // blocks until it expires
        SAY("child %lu", (unsigned long)count);
        TRY(timerfd_settime(fd, 0, &times, NULL));
        _exit(0);
    }
    wait(NULL);
    uint64_t count = 0;
    TRY(read(copy, &count, 8));
    SAY("%lu", (unsigned long)count);
    int set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u32 = 7};
    TRY(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    TRY(epoll_wait(set, &event, 1, 0));
    TRY(timerfd_settime(fd, 0, &times, NULL));
    TRY(epoll_wait(set, &event, 1, 5000));
    TRY(epoll_wait(set, &event, 1, 0));
    TRY(ioctl(fd, _IOW('T', 0, uint64_t), &(uint64_t){5}));  // TFD_IOC_SET_TICKS
    TRY(read(fd, &count, 8));
    SAY("ticks %lu", (unsigned long)count);
}

int main(void) {
    manual_begin();
    manual_in_child("errors", errors);
    manual_in_child("clocks and limits", clocks_and_limits);
    manual_in_child("expirations", expirations);
    manual_in_child("shared", shared);
    return guest_passed();
}
