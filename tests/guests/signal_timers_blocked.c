// Timers of CPU time whose signals are blocked by all threads: they wait, and come once unblocked.
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "guest.h"

static volatile sig_atomic_t came[65];
static void on_timer(int number) { came[number]++; }

static void* compute_in_thread(void* unused) {
    guest_compute(40);
    return unused;
}

int main(void) {
    int signals[] = {SIGVTALRM, SIGPROF, SIGUSR1};
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < 3; i++) sigaddset(&set, signals[i]);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
    struct itimerval often = {{0, 5000}, {0, 5000}}, off = {{0, 0}, {0, 0}};
    CHECK_EQ(setitimer(ITIMER_VIRTUAL, &often, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_PROF, &often, NULL), 0);
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    CHECK_EQ(timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer), 0);
    struct itimerspec once = {{0, 0}, {0, 5000000}};
    CHECK_EQ(timer_settime(timer, 0, &once, NULL), 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, compute_in_thread, NULL), 0);
    guest_compute(80);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_VIRTUAL, &off, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_PROF, &off, NULL), 0);
    for (int i = 0; i < 3; i++) CHECK(signal(signals[i], on_timer) == SIG_DFL);
    CHECK_EQ(sigprocmask(SIG_UNBLOCK, &set, NULL), 0);
    for (int i = 0; i < 3; i++) printf("signal %d: %d\n", signals[i], came[signals[i]]);
    return guest_passed();
}
