// Signals come faster than they are handled, from timers, another process and dying children: the
// program gets on, no handler is interrupted by its own signal, and none of them is left over in a
// queue when the storm is over.
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "guest.h"

enum { ALARMS = 150, TIMED = 150, CHILDREN = 12, SENT = 300 };

static volatile int alarms, timed, deaths, users, inside[65], overrun;
static timer_t timer;

static void busy(int us) {
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - from.tv_sec) * 1000000 + (now.tv_nsec - from.tv_nsec) / 1000 < us);
}

static void enter(int number) {
    CHECK_EQ(inside[number], 0);
    inside[number] = 1;
}

static void on_alarm(int number) {
    enter(number);
    struct itimerval off = {0};
    if (++alarms == ALARMS) CHECK_EQ(setitimer(ITIMER_REAL, &off, NULL), 0);
    busy(150);
    inside[number] = 0;
}

static void on_timer(int number, siginfo_t* info, void* unused) {
    enter(number);
    CHECK_EQ(info->si_code, SI_TIMER);
    CHECK_EQ(info->si_value.sival_int, 4711);
    if (timer_getoverrun(timer) > 0) overrun = 1;
    struct itimerspec off = {0};
    if (++timed == TIMED) CHECK_EQ(timer_settime(timer, 0, &off, NULL), 0);
    busy(150);
    inside[number] = 0;
}

static void on_child(int number) {
    enter(number);
    int error = errno;
    while (waitpid(-1, NULL, WNOHANG) > 0) deaths++;
    errno = error;
    inside[number] = 0;
}

static void on_user(int number, siginfo_t* info, void* unused) {
    enter(number);
    CHECK_EQ(info->si_code, SI_USER);
    users++;
    inside[number] = 0;
}

static void handle(int number, void (*handler)(int, siginfo_t*, void*)) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    CHECK_EQ(sigaction(number, &action, NULL), 0);
}

static void bear_children(void) {
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) _exit(0);
    }
    pid_t sender = fork();
    CHECK(sender >= 0);
    if (sender == 0) {
        for (int i = 0; i < SENT; i++) kill(getppid(), SIGUSR1);
        _exit(0);
    }
}

static void start_timers(void) {
    struct sigevent event = {
        .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 2, .sigev_value.sival_int = 4711};
    CHECK_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    struct itimerspec fast = {{0, 40000}, {0, 40000}};
    CHECK_EQ(timer_settime(timer, 0, &fast, NULL), 0);
    struct itimerval often = {{0, 50}, {0, 50}};
    CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
}

int main(void) {
    struct sigaction plain = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    CHECK_EQ(sigaction(SIGALRM, &plain, NULL), 0);
    plain.sa_handler = on_child;
    CHECK_EQ(sigaction(SIGCHLD, &plain, NULL), 0);
    handle(SIGRTMIN + 2, on_timer);
    handle(SIGUSR1, on_user);
    bear_children();
    start_timers();
    volatile unsigned long work = 0;
    while (alarms < ALARMS || timed < TIMED || deaths <= CHILDREN) {
        work++;
        if (work % 64 == 0) getppid();
        if (deaths <= CHILDREN && alarms >= ALARMS && timed >= TIMED) usleep(1000);
    }
    // A stopped timer's last signal may be pending.
    usleep(1000);
    CHECK(alarms <= ALARMS + 1 && timed <= TIMED + 1);
    CHECK(users >= 1 && users <= SENT);
    CHECK_EQ(deaths, CHILDREN + 1);
    CHECK(overrun);
    int before = alarms + timed + users;
    busy(50000);
    CHECK_EQ(alarms + timed + users, before);
    return guest_passed();
}
