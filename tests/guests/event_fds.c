// eventfd, timerfd and signalfd deliver counts, expirations and signals.
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include "guest.h"

int main(void) {
    uint64_t value = 5;
    int event = eventfd(3, EFD_NONBLOCK);
    CHECK_EQ(write(event, &value, 8), 8);
    CHECK_EQ(read(event, &value, 8), 8);
    CHECK_EQ(value, 8);
    CHECK_ERRNO(read(event, &value, 8), EAGAIN);
    int counter = eventfd(2, EFD_SEMAPHORE);
    CHECK_EQ(read(counter, &value, 8), 8);
    CHECK_EQ(value, 1);
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec spec = {.it_value = {0, 5000000}, .it_interval = {0, 0}};
    CHECK_EQ(timerfd_settime(timer, 0, &spec, NULL), 0);
    CHECK_EQ(read(timer, &value, 8), 8);
    CHECK_EQ(value, 1);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
    int signals = signalfd(-1, &set, 0);
    CHECK_EQ(raise(SIGUSR1), 0);
    struct signalfd_siginfo info;
    struct pollfd polled = {signals, POLLIN, 0};
    CHECK_EQ(poll(&polled, 1, 1000), 1);
    CHECK_EQ(read(signals, &info, sizeof info), sizeof info);
    CHECK_EQ(info.ssi_signo, SIGUSR1);
    CHECK_EQ(info.ssi_pid, getpid());
    return guest_passed();
}
