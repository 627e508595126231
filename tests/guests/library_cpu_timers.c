// Timers of CPU time fire for the time that a library uses, and in between their setting is seen.
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "guest.h"
#include "libgprguest.h"

enum { INTERVAL_US = 20000, TIMES = 5, STEP = 1000000 };

static volatile int fired[65], codes[65], carried;

static void on_timer(int number, siginfo_t* info, void* context) {
    (void)context;
    codes[number] = info->si_code;
    if (info->si_code == SI_TIMER) carried = info->si_value.sival_int;
    fired[number]++;
}

static int64_t used_us(clockid_t clock) {
    struct timespec now;
    CHECK_EQ(clock_gettime(clock, &now), 0);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

// The library computes until they have come; the time that it takes is the interval's at least.
static void compute_until(int number, int times) {
    int64_t begin = used_us(CLOCK_PROCESS_CPUTIME_ID);
    while (fired[number] < times) CHECK_EQ(remote_count(STEP), STEP);
    int64_t used = used_us(CLOCK_PROCESS_CPUTIME_ID) - begin;
    CHECK(used >= (times - 1) * INTERVAL_US / 2);  // the kernel counts in ticks
}

static void try_interval(int kind, int number) {
    struct itimerval every = {{0, INTERVAL_US}, {0, INTERVAL_US}}, seen, off = {{0, 0}, {0, 0}};
    CHECK_EQ(setitimer(kind, &every, NULL), 0);
    compute_until(number, TIMES);
    CHECK_EQ(codes[number], SI_KERNEL);
    CHECK_EQ(getitimer(kind, &seen), 0);
    CHECK_EQ(seen.it_interval.tv_usec, INTERVAL_US);
    CHECK(seen.it_value.tv_sec == 0 && seen.it_value.tv_usec > 0);
    CHECK(seen.it_value.tv_usec <= 2 * INTERVAL_US);  // the kernel adds a tick
    CHECK_EQ(setitimer(kind, &off, &seen), 0);
    CHECK_EQ(seen.it_interval.tv_usec, INTERVAL_US);
    CHECK_EQ(getitimer(kind, &seen), 0);
    CHECK(seen.it_value.tv_sec == 0 && seen.it_value.tv_usec == 0);
    off.it_value.tv_usec = 1000000;
    CHECK_ERRNO(setitimer(kind, &off, NULL), EINVAL);
}

static void try_timer(clockid_t clock) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    event.sigev_value.sival_int = 4711;
    struct itimerspec spec = {{0, INTERVAL_US * 1000}, {0, INTERVAL_US * 1000}}, left;
    timer_t timer;
    fired[SIGUSR1] = carried = 0;
    CHECK_EQ(timer_create(clock, &event, &timer), 0);
    CHECK_EQ(timer_gettime(timer, &left), 0);
    CHECK(left.it_value.tv_sec == 0 && left.it_value.tv_nsec == 0);
    CHECK_EQ(timer_settime(timer, 0, &spec, NULL), 0);
    compute_until(SIGUSR1, TIMES);
    CHECK_EQ(carried, 4711);
    CHECK_EQ(timer_gettime(timer, &left), 0);
    CHECK_EQ(left.it_interval.tv_nsec, INTERVAL_US * 1000);
    int64_t at = used_us(clock) + INTERVAL_US;
    spec = (struct itimerspec){{0, 0}, {at / 1000000, at % 1000000 * 1000}};
    CHECK_EQ(timer_settime(timer, TIMER_ABSTIME, &spec, NULL), 0);
    fired[SIGUSR1] = 0;
    compute_until(SIGUSR1, 1);
    CHECK(used_us(clock) >= at);
    CHECK_EQ(timer_gettime(timer, &left), 0);
    CHECK(left.it_value.tv_sec == 0 && left.it_value.tv_nsec == 0);
    CHECK_ERRNO(timer_settime(timer, 0, NULL, NULL), EINVAL);
    CHECK_EQ(timer_delete(timer), 0);
    CHECK_ERRNO(timer_gettime(timer, &left), EINVAL);
}

static void* in_thread(void* unused) {
    try_timer(CLOCK_THREAD_CPUTIME_ID);
    return unused;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGVTALRM, &action, NULL);
    sigaction(SIGPROF, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    try_interval(ITIMER_VIRTUAL, SIGVTALRM);
    try_interval(ITIMER_PROF, SIGPROF);
    try_timer(CLOCK_PROCESS_CPUTIME_ID);
    try_timer(CLOCK_THREAD_CPUTIME_ID);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, in_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    clockid_t thread_clock;
    CHECK_EQ(pthread_getcpuclockid(pthread_self(), &thread_clock), 0);
    try_timer(thread_clock);
    return guest_passed();
}
