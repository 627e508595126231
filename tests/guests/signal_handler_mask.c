// While a handler runs its own signal and those of sa_mask are blocked: it sees that, and no call
// in it is interrupted by them; what came meanwhile comes after it.
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "guest.h"

static volatile int alarms, users;
static int fds[2];

static void on_user(int number) {
    (void)number;
    users++;
}

static void on_alarm(int number) {
    struct itimerval off = {0};
    sigset_t mask, pending;
    alarms++;
    if (alarms >= 2) {
        CHECK_EQ(setitimer(ITIMER_REAL, &off, NULL), 0);
        return;
    }
    CHECK_EQ(raise(SIGUSR1), 0);
    struct timespec sleep_time = {0, 50000000};
    CHECK_EQ(nanosleep(&sleep_time, NULL), 0);
    char byte;
    for (int i = 0; i < 100; i++) CHECK_EQ(write(fds[1], "x", 1), 1);
    for (int i = 0; i < 100; i++) CHECK_EQ(read(fds[0], &byte, 1), 1);
    CHECK_EQ(sigpending(&pending), 0);
    CHECK(sigismember(&pending, SIGALRM));
    CHECK(sigismember(&pending, SIGUSR1));
    CHECK_EQ(sigprocmask(SIG_BLOCK, NULL, &mask), 0);
    CHECK(sigismember(&mask, number));
    CHECK(sigismember(&mask, SIGUSR1));
    CHECK(!sigismember(&mask, SIGUSR2));
    CHECK_EQ(alarms, 1);
    CHECK_EQ(users, 0);
}

int main(void) {
    CHECK_EQ(pipe(fds), 0);
    struct sigaction action = {.sa_handler = on_user};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    action.sa_handler = on_alarm;
    sigaddset(&action.sa_mask, SIGUSR1);
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    struct itimerval timer = {.it_value = {0, 10000}, .it_interval = {0, 10000}};
    CHECK_EQ(setitimer(ITIMER_REAL, &timer, NULL), 0);
    while (alarms < 2) pause();
    CHECK_EQ(users, 1);
    sigset_t mask;
    CHECK_EQ(sigprocmask(SIG_BLOCK, NULL, &mask), 0);
    CHECK(!sigismember(&mask, SIGALRM) && !sigismember(&mask, SIGUSR1));
    return guest_passed();
}
