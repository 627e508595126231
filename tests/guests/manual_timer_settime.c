// timer_settime(2), timer_gettime and timer_getoverrun, on every clock and kind of notice.
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "manual.h"

static volatile int fired, value, code;
static void on_timer(int number, siginfo_t* info, void* context) {
    fired++;
    value = info->si_value.sival_int;
    code = info->si_code;
}

static timer_t made(clockid_t clock, int notify) {
    timer_t timer;
    struct sigevent event = {.sigev_notify = notify, .sigev_signo = SIGRTMIN + 1};
    event.sigev_value.sival_int = 42;
    CHECK_EQ(timer_create(clock, &event, &timer), 0);
    return timer;
}

static void errors(void) {
    timer_t timer = made(CLOCK_MONOTONIC, SIGEV_NONE), bad = (timer_t)12345;
    struct itimerspec times = {{0, 0}, {1, 0}}, old;
    TRY(timer_settime(bad, 0, &times, &old));
    TRY(timer_gettime(bad, &old));
    TRY(timer_getoverrun(bad));
    TRY(timer_delete(bad));
    TRY(syscall(SYS_timer_settime, (int)(long)timer, 0, NULL, &old));
    TRY(syscall(SYS_timer_settime, (int)(long)timer, 0, manual_bad_pointer(), &old));
    TRY(syscall(SYS_timer_settime, (int)(long)timer, 0, &times, manual_bad_pointer()));
    TRY(timer_gettime(timer, &old));
    SAY("armed although it failed: %d", old.it_value.tv_nsec || old.it_value.tv_sec);
    times.it_value.tv_nsec = 1000000000;
    TRY(timer_settime(timer, 0, &times, &old));
    times.it_value.tv_nsec = -1;
    TRY(timer_settime(timer, 0, &times, &old));
    times.it_value = (struct timespec){-1, 0};
    TRY(timer_settime(timer, 0, &times, &old));
    times.it_value = (struct timespec){1, 0};
    times.it_interval.tv_nsec = 1000000000;
    TRY(timer_settime(timer, 0, &times, &old));
    TRY(syscall(SYS_timer_gettime, (int)(long)timer, manual_bad_pointer()));
    times.it_interval.tv_nsec = 0;
    TRY(timer_settime(timer, 0x4, &times, &old));
    TRY(timer_settime(timer, 0, &times, NULL));
    TRY(timer_delete(timer));
    TRY(timer_delete(timer));
    struct sigevent event = {.sigev_notify = 77};
    TRY(timer_create(CLOCK_MONOTONIC, &event, &timer));
    event = (struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = 65};
    TRY(timer_create(CLOCK_MONOTONIC, &event, &timer));
    TRY(timer_create(CLOCK_MONOTONIC_RAW, NULL, &timer));
    TRY(timer_create((clockid_t)99, NULL, &timer));
    TRY(syscall(SYS_timer_create, CLOCK_MONOTONIC, manual_bad_pointer(), &timer));
    TRY(syscall(SYS_timer_create, CLOCK_MONOTONIC, NULL, manual_bad_pointer()));
}

static void disarmed_and_armed(void) {
    timer_t timer = made(CLOCK_BOOTTIME, SIGEV_SIGNAL);
    struct itimerspec times = {{0, 0}, {1000, 0}}, old;
    TRY(timer_gettime(timer, &old));
    SAY("%ld %ld", (long)old.it_value.tv_sec, old.it_value.tv_nsec);
    TRY(timer_settime(timer, 0, &times, &old));
    SAY("%ld", (long)old.it_value.tv_sec);
    times = (struct itimerspec){{5, 0}, {0, 0}};
    TRY(timer_settime(timer, 0, &times, &old));
    SAY("left of 1000: %d", old.it_value.tv_sec >= 990);
    TRY(timer_gettime(timer, &old));
    SAY("disarmed %ld, interval %d", (long)old.it_value.tv_sec, old.it_interval.tv_sec == 5);
}

static void absolute(void) {
    struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO};
    sigaction(SIGRTMIN + 1, &action, NULL);
    const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI};
    for (int i = 0; i < 4; i++) {
        fired = value = 0;
        timer_t timer = made(clocks[i], SIGEV_SIGNAL);
        struct itimerspec times = {{0, 0}, {0, 0}};
        clock_gettime(clocks[i], &times.it_value);
        times.it_value.tv_sec -= 5;  // in the past: at once
        TRY(timer_settime(timer, TIMER_ABSTIME, &times, NULL));
        while (!fired) usleep(1000);
        SAY("%d: %d %d %d", i, fired, value, code == SI_TIMER);
        timer_delete(timer);
    }
}

static void overrun(void) {
    struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO};
    sigaction(SIGRTMIN + 1, &action, NULL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    timer_t timer = made(CLOCK_MONOTONIC, SIGEV_SIGNAL);
    struct itimerspec times = {{0, 1000000}, {0, 1000000}};
    TRY(timer_settime(timer, 0, &times, NULL));
    usleep(30000);
    siginfo_t info;
    SAY("got it: %d", sigwaitinfo(&set, &info) == SIGRTMIN + 1);
    SAY("missed some: %d, the same %d", info.si_overrun >= 10,
        timer_getoverrun(timer) == info.si_overrun);
    timer_delete(timer);
    struct timespec none = {0, 0};
    TRY(sigtimedwait(&set, &info, &none));
}

static pthread_t main_thread;
static volatile int by_thread;
static void on_thread(union sigval val) {
    by_thread = !pthread_equal(pthread_self(), main_thread) ? val.sival_int : -1;
}
static void in_threads(void) {
    main_thread = pthread_self();
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD};
    event.sigev_notify_function = on_thread;
    event.sigev_value.sival_int = 9;
    TRY(timer_create(CLOCK_MONOTONIC, &event, &timer));
    struct itimerspec times = {{0, 0}, {0, 2000000}};
    TRY(timer_settime(timer, 0, &times, NULL));
    while (!by_thread) usleep(1000);
    SAY("%d", by_thread);
    timer_delete(timer);
}

static void cpu_clocks(void) {
    struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO};
    sigaction(SIGRTMIN + 1, &action, NULL);
    const clockid_t clocks[] = {CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID};
    for (int i = 0; i < 2; i++) {
        fired = 0;
        timer_t timer = made(clocks[i], SIGEV_SIGNAL);
        struct itimerspec times = {{0, 0}, {0, 5000000}}, old;
        TRY(syscall(SYS_timer_settime, (int)(long)timer, 0, manual_bad_pointer(), NULL));
        TRY(syscall(SYS_timer_settime, (int)(long)timer, 0, NULL, NULL));
        TRY(timer_settime(timer, 0, &times, &old));
        volatile unsigned long spin = 0;
        while (!fired) spin++;
        SAY("%d %d", fired, value);
        timer_delete(timer);
    }
}

int main(void) {
    manual_begin();
    manual_in_child("errors", errors);
    manual_in_child("disarmed and armed", disarmed_and_armed);
    manual_in_child("absolute", absolute);
    manual_in_child("overrun", overrun);
    manual_in_child("in threads", in_threads);
    manual_in_child("CPU clocks", cpu_clocks);
    return guest_passed();
}
