// What a program has of its process before its first instruction: timers, pending signals, masks,
// limits, names and CPU time, as the image before it left them.
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>

#include "guest.h"

static volatile sig_atomic_t came[65];
static void on_timer(int number) { came[number]++; }

static long seconds_left(int kind) {
    struct itimerval now;
    CHECK_EQ(getitimer(kind, &now), 0);
    return now.it_value.tv_sec;
}

static void again(char** argv, int step, long ms_used) {
    char text[20], used[20];
    snprintf(text, sizeof text, "%d", step);
    snprintf(used, sizeof used, "%ld", ms_used);
    char* next[] = {argv[0], text, used, NULL};
    CHECK_EQ(fflush(stdout), 0);
    execv(argv[0], next);
    CHECK(!"exec failed");
}

static long ms_used(void) {
    struct timespec now;
    CHECK_EQ(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now), 0);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void leave_behind(char** argv) {
    struct itimerval real = {{7, 0}, {1000, 0}}, user = {{8, 0}, {2000, 0}},
                     all = {{9, 0}, {3000, 0}};
    CHECK_EQ(setitimer(ITIMER_REAL, &real, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_VIRTUAL, &user, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_PROF, &all, NULL), 0);
    clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID};
    for (int i = 0; i < 2; i++) {
        timer_t timer;
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
        struct itimerspec soon = {{0, 0}, {0, 1}};
        CHECK_EQ(timer_create(clocks[i], &event, &timer), 0);
        if (i == 1) soon.it_value.tv_sec = 1;
        signal(SIGUSR2, SIG_IGN);
        CHECK_EQ(timer_settime(timer, 0, &soon, NULL), 0);
    }
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGRTMIN + 1);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
    CHECK_EQ(kill(getpid(), SIGUSR1), 0);
    CHECK_EQ(syscall(SYS_tgkill, getpid(), getpid(), SIGTERM), 0);
    for (int i = 0; i < 3; i++) {
        union sigval value = {.sival_int = 40 + i};
        CHECK_EQ(sigqueue(getpid(), SIGRTMIN + 1, value), 0);
    }
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, on_timer);
    CHECK_EQ(prctl(PR_SET_NAME, "not for long"), 0);
    CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGUSR2), 0);
    CHECK_EQ(prctl(PR_SET_TIMERSLACK, 123456), 0);
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(prctl(PR_SET_DUMPABLE, 0), 0);
    CHECK_EQ(prctl(PR_SET_KEEPCAPS, 1), 0);
    CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    CHECK_EQ(nice(3), 3);
    struct rlimit limit = {100, 200};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    umask(0135);
    guest_compute(60);
    again(argv, 1, ms_used());
}

static void look(char** argv, long used) {
    long seconds[] = {seconds_left(ITIMER_REAL), seconds_left(ITIMER_VIRTUAL),
                      seconds_left(ITIMER_PROF)};
    for (int i = 0; i < 3; i++) {
        long all = (i + 1) * 1000;
        printf("timer %d: %d\n", i, seconds[i] > all - 100 && seconds[i] <= all);
        struct itimerval now;
        CHECK_EQ(getitimer(i, &now), 0);
        CHECK_EQ(now.it_interval.tv_sec, 7 + i);
    }
    struct itimerspec spec;
    for (int i = 0; i < 2; i++) CHECK_ERRNO(syscall(SYS_timer_gettime, i, &spec), EINVAL);
    CHECK_ERRNO(syscall(SYS_timer_gettime, 0x40000000, &spec), EINVAL);

    sigset_t set;
    CHECK_EQ(sigprocmask(SIG_BLOCK, NULL, &set), 0);
    CHECK(sigismember(&set, SIGUSR1) && sigismember(&set, SIGTERM));
    CHECK(sigismember(&set, SIGRTMIN + 1) && !sigismember(&set, SIGHUP));
    sigset_t pending;
    CHECK_EQ(sigpending(&pending), 0);
    CHECK(sigismember(&pending, SIGUSR1) && sigismember(&pending, SIGTERM));
    CHECK(sigismember(&pending, SIGRTMIN + 1) && !sigismember(&pending, SIGHUP));
    siginfo_t info;
    struct timespec none = {0, 0};
    CHECK_EQ(sigtimedwait(&set, &info, &none), SIGTERM);
    CHECK_EQ(info.si_pid, getpid());
    CHECK_EQ(sigtimedwait(&set, &info, &none), SIGUSR1);
    CHECK_EQ(info.si_pid, getpid());
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(sigtimedwait(&set, &info, &none), SIGRTMIN + 1);
        CHECK_EQ(info.si_value.sival_int, 40 + i);
    }
    CHECK_ERRNO(sigtimedwait(&set, &info, &none), EAGAIN);
    CHECK(signal(SIGHUP, SIG_IGN) == SIG_IGN);
    CHECK(signal(SIGUSR2, SIG_IGN) == SIG_IGN);
    CHECK(signal(SIGINT, SIG_DFL) == SIG_DFL);

    char name[16];
    int value = 0;
    CHECK_EQ(prctl(PR_GET_NAME, name), 0);
    printf("name: %s\n", name);
    CHECK_EQ(prctl(PR_GET_PDEATHSIG, &value), 0);
    CHECK_EQ(value, SIGUSR2);
    CHECK_EQ(prctl(PR_GET_TIMERSLACK), 123456);
    CHECK_EQ(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
    CHECK_EQ(prctl(PR_GET_DUMPABLE), 1);
    CHECK_EQ(prctl(PR_GET_KEEPCAPS), 0);
    CHECK_EQ(prctl(PR_GET_CHILD_SUBREAPER, &value), 0);
    CHECK_EQ(value, 1);
    CHECK_EQ(nice(0), 3);
    CHECK_EQ(getpriority(PRIO_PROCESS, 0), 3);
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK(limit.rlim_cur == 100 && limit.rlim_max == 200);
    CHECK_EQ(umask(022), 0135);
    CHECK(ms_used() >= used);
    struct tms ticks;
    CHECK(times(&ticks) != (clock_t)-1);
    CHECK(ticks.tms_utime + ticks.tms_stime >= 5);

    // What comes soon, comes to the next image, and again.
    struct itimerval soon = {{0, 20000}, {0, 40000}}, off = {{0, 0}, {0, 0}};
    CHECK_EQ(setitimer(ITIMER_REAL, &off, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_VIRTUAL, &soon, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_PROF, &soon, NULL), 0);
    sigemptyset(&set);
    sigaddset(&set, SIGVTALRM);
    sigaddset(&set, SIGPROF);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
    CHECK_EQ(alarm(500), 0);
    again(argv, 2, ms_used());
}

static void meet_timers(char** argv) {
    int signals[] = {SIGVTALRM, SIGPROF};
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < 2; i++) {
        CHECK(signal(signals[i], on_timer) == SIG_DFL);
        sigaddset(&set, signals[i]);
    }
    CHECK_EQ(sigprocmask(SIG_UNBLOCK, &set, NULL), 0);
    for (int tries = 0; tries < 500 && (came[SIGVTALRM] < 3 || came[SIGPROF] < 3); tries++) {
        guest_compute(10);
    }
    printf("came: %d %d\n", came[SIGVTALRM] >= 3, came[SIGPROF] >= 3);
    long left = alarm(2);
    CHECK(left > 400 && left <= 500);
    // One that has expired while it was blocked is pending in the next image.
    CHECK_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
    struct itimerval once = {{0, 0}, {0, 1000}};
    CHECK_EQ(setitimer(ITIMER_VIRTUAL, &once, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_PROF, &once, NULL), 0);
    guest_compute(60);
    again(argv, 3, 0);
}

static void meet_pending(void) {
    sigset_t set;
    CHECK_EQ(sigpending(&set), 0);
    printf("pending: %d %d\n", sigismember(&set, SIGVTALRM), sigismember(&set, SIGPROF));
    struct itimerval now;
    CHECK_EQ(getitimer(ITIMER_VIRTUAL, &now), 0);
    CHECK(now.it_value.tv_sec == 0 && now.it_value.tv_usec == 0);
    signal(SIGALRM, on_timer);
    while (came[SIGALRM] == 0) pause();
}

int main(int argc, char** argv) {
    int step = argc > 1 ? atoi(argv[1]) : 0;
    if (step == 0) leave_behind(argv);
    if (step == 1) look(argv, atol(argv[2]));
    if (step == 2) meet_timers(argv);
    meet_pending();
    return guest_passed();
}
