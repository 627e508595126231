// POSIX timers of all kinds at the same time: ids, remaining times, overruns, signals for one
// thread, values that the signals carry, and what is refused.
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#include "guest.h"

enum { KINDS = 4 };
static volatile int fired[65];
static volatile int carried[65];
static volatile pid_t receiver;

static void on_timer(int number, siginfo_t* info, void* context) {
    (void)context;
    if (info->si_code == SI_TIMER) carried[number] = info->si_value.sival_int;
    receiver = (pid_t)syscall(SYS_gettid);
    fired[number]++;
}

static void compute_until(volatile int* word, int times) {
    volatile uint64_t x = 1;
    while (*word < times) x = x * 6364136223846793005u + 1;
}

static void* compute_in_thread(void* argument) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR2};
    event._sigev_un._tid = (int)syscall(SYS_gettid);
    event.sigev_value.sival_int = 77;
    timer_t timer;
    CHECK_EQ(timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer), 0);
    struct itimerspec spec = {{0, 2000000}, {0, 2000000}};
    CHECK_EQ(timer_settime(timer, 0, &spec, NULL), 0);
    compute_until(&fired[SIGUSR2], 3);
    CHECK_EQ(receiver, syscall(SYS_gettid));
    CHECK_EQ(timer_delete(timer), 0);
    return argument;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    clockid_t clocks[KINDS] = {CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_REALTIME,
                               CLOCK_THREAD_CPUTIME_ID};
    timer_t timers[KINDS];
    struct itimerspec spec = {{0, 0}, {1000, 0}}, left;
    struct sigevent silent = {.sigev_notify = SIGEV_NONE};
    for (int i = 0; i < KINDS; i++) {
        CHECK_EQ(timer_create(clocks[i], &silent, &timers[i]), 0);
        for (int k = 0; k < i; k++) CHECK(timers[k] != timers[i]);
        CHECK_EQ(timer_gettime(timers[i], &left), 0);
        CHECK_EQ(left.it_value.tv_sec, 0);
        CHECK_EQ(timer_settime(timers[i], 0, &spec, NULL), 0);
    }
    for (int i = 0; i < KINDS; i++) {
        CHECK_EQ(timer_gettime(timers[i], &left), 0);
        CHECK(left.it_value.tv_sec >= 900 && left.it_value.tv_sec <= 1000);
        struct itimerspec off = {{0, 0}, {0, 0}}, old = {{0, 0}, {0, 0}};
        CHECK_EQ(timer_settime(timers[i], 0, &off, &old), 0);
        CHECK(old.it_value.tv_sec >= 900 && old.it_interval.tv_sec == 0);
        CHECK_EQ(timer_getoverrun(timers[i]), 0);
        CHECK_ERRNO(timer_settime(timers[i], 0, NULL, NULL), EINVAL);
        CHECK_EQ(timer_delete(timers[i]), 0);
        CHECK_ERRNO(timer_delete(timers[i]), EINVAL);
        CHECK_ERRNO(timer_gettime(timers[i], &left), EINVAL);
    }
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    event.sigev_value.sival_int = 4711;
    timer_t timer;
    spec = (struct itimerspec){{0, 2000000}, {0, 2000000}};
    CHECK_EQ(timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer), 0);
    CHECK_EQ(timer_settime(timer, 0, &spec, NULL), 0);
    compute_until(&fired[SIGUSR1], 3);
    CHECK_EQ(carried[SIGUSR1], 4711);
    CHECK_EQ(timer_delete(timer), 0);
    CHECK_EQ(timer_create(CLOCK_PROCESS_CPUTIME_ID, NULL, &timer), 0);
    CHECK_EQ(timer_settime(timer, 0, &spec, NULL), 0);
    compute_until(&fired[SIGALRM], 2);
    CHECK_EQ(timer_delete(timer), 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, compute_in_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(carried[SIGUSR2], 77);
    CHECK_ERRNO(syscall(SYS_timer_create, 12345, NULL, &timer), EINVAL);
    CHECK_ERRNO(syscall(SYS_timer_create, CLOCK_PROCESS_CPUTIME_ID, (void*)16, &timer), EFAULT);
    CHECK_ERRNO(syscall(SYS_timer_create, CLOCK_PROCESS_CPUTIME_ID, NULL, (void*)16), EFAULT);
    return guest_passed();
}
