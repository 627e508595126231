// ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF and POSIX timers all fire while the program computes.
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "guest.h"

static volatile int fired[65];
static volatile void* carried;

static void on_timer(int number, siginfo_t* info, void* context) {
    fired[number]++;
    if (info->si_code == SI_TIMER) carried = info->si_value.sival_ptr;
}

static void compute_until(int number, int times) {
    volatile uint64_t x = 1;
    while (fired[number] < times) x = x * 6364136223846793005u + 1;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO};
    int kinds[] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};
    int signals[] = {SIGALRM, SIGVTALRM, SIGPROF};
    struct itimerval every = {{0, 5000}, {0, 5000}}, off = {{0, 0}, {0, 0}};
    for (int i = 0; i < 3; i++) {
        sigaction(signals[i], &action, NULL);
        CHECK_EQ(setitimer(kinds[i], &every, NULL), 0);
        compute_until(signals[i], 3);
        CHECK_EQ(setitimer(kinds[i], &off, NULL), 0);
    }
    sigaction(SIGUSR1, &action, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
                             .sigev_signo = SIGUSR1,
                             .sigev_value.sival_ptr = (void*)&fired};
    clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_PROCESS_CPUTIME_ID,
                          CLOCK_THREAD_CPUTIME_ID};
    for (int i = 0; i < 4; i++) {
        timer_t timer;
        fired[SIGUSR1] = 0;
        CHECK_EQ(timer_create(clocks[i], &event, &timer), 0);
        struct itimerspec spec = {{0, 3000000}, {0, 3000000}};
        CHECK_EQ(timer_settime(timer, 0, &spec, NULL), 0);
        compute_until(SIGUSR1, 3);
        CHECK(timer_getoverrun(timer) >= 0);
        CHECK_EQ(timer_delete(timer), 0);
    }
    CHECK(carried == (void*)&fired);
    return guest_passed();
}
