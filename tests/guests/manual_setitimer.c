// setitimer(2), alarm(2): each clock, periods, what fork and exec keep, errors.
#include <signal.h>
#include <sys/time.h>

#include "manual.h"

static volatile sig_atomic_t counted;
static void count(int number) { counted += number > 0; }
static void handle(int number) {
    struct sigaction action = {.sa_handler = count};
    sigaction(number, &action, NULL);
}

static void errors(void) {
    struct itimerval good = {{0, 0}, {100, 0}}, old;
    TRY(setitimer(3, &good, NULL));
    TRY(setitimer(-1, &good, NULL));
    TRY(getitimer(3, &old));
    TRY(getitimer(ITIMER_REAL, manual_bad_pointer()));
    TRY(setitimer(ITIMER_REAL, manual_bad_pointer(), NULL));
    TRY(setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 1000000}}, NULL));
    TRY(setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, -1}}, NULL));
    TRY(setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {-1, 0}}, NULL));
    TRY(setitimer(ITIMER_REAL, &(struct itimerval){{0, 1000000}, {1, 0}}, NULL));
    TRY(getitimer(ITIMER_REAL, &old));
    SAY("%ld %ld", (long)old.it_value.tv_sec, (long)old.it_value.tv_usec);
    TRY(setitimer(ITIMER_REAL, &good, manual_bad_pointer()));  // set all the same
    TRY(getitimer(ITIMER_REAL, &old));
    SAY("%d", old.it_value.tv_sec >= 90);
    TRY(syscall(SYS_setitimer, ITIMER_REAL, NULL, &old));  // Linux: like zeros
    SAY("%d", old.it_value.tv_sec >= 90);
    TRY(getitimer(ITIMER_REAL, &old));
    SAY("%ld %ld", (long)old.it_value.tv_sec, (long)old.it_value.tv_usec);
}

static void real(void) {
    handle(SIGALRM);
    struct itimerval periodic = {{0, 5000}, {0, 1}}, old;
    TRY(setitimer(ITIMER_REAL, &periodic, NULL));
    while (counted < 5) pause();
    TRY(getitimer(ITIMER_REAL, &old));
    SAY("period %ld %ld, next within it %d", (long)old.it_interval.tv_sec,
        (long)old.it_interval.tv_usec, old.it_value.tv_sec == 0 && old.it_value.tv_usec <= 5000);
    TRY(alarm(200));  // the same timer
    TRY(getitimer(ITIMER_REAL, &old));
    SAY("%d %ld", old.it_value.tv_sec >= 190, (long)old.it_interval.tv_usec);
    SAY("alarm left %d", alarm(0) >= 190);
    TRY(alarm(0));
    counted = 0;
    TRY(setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 2000}}, &old));
    while (counted < 1) usleep(1000);  // it may have come before
    TRY(getitimer(ITIMER_REAL, &old));
    SAY("once: %d, %ld %ld", (int)counted, (long)old.it_value.tv_sec, (long)old.it_value.tv_usec);
}

static void spin_until(int goal) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while (counted < goal && now.tv_sec - begin.tv_sec < 20);
}

static void of_cpu(void) {
    handle(SIGVTALRM);
    handle(SIGPROF);
    TRY(setitimer(ITIMER_VIRTUAL, &(struct itimerval){{0, 10000}, {0, 10000}}, NULL));
    spin_until(3);
    SAY("virtual came %d", counted >= 3);
    TRY(setitimer(ITIMER_VIRTUAL, &(struct itimerval){0}, NULL));
    counted = 0;
    TRY(setitimer(ITIMER_PROF, &(struct itimerval){{0, 10000}, {0, 10000}}, NULL));
    spin_until(3);
    SAY("prof came %d", counted >= 3);
    struct itimerval old;
    TRY(setitimer(ITIMER_PROF, &(struct itimerval){0}, &old));
    SAY("period %ld", (long)old.it_interval.tv_usec);
}

static void inherited(void) {
    struct itimerval old;
    TRY(setitimer(ITIMER_REAL, &(struct itimerval){{7, 0}, {100, 0}}, NULL));
    TRY(setitimer(ITIMER_PROF, &(struct itimerval){{7, 0}, {100, 0}}, NULL));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        usleep(40000);
        TRY(getitimer(ITIMER_REAL, &old));
        SAY("child real %ld %ld", (long)old.it_value.tv_sec, (long)old.it_interval.tv_sec);
        TRY(getitimer(ITIMER_PROF, &old));
        SAY("child prof %ld %ld", (long)old.it_value.tv_sec, (long)old.it_interval.tv_sec);
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    fflush(stdout);
    child = fork();
    if (child == 0) {
        setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 50000}}, NULL);
        execl("/bin/sleep", "sleep", "10", NULL);
        _exit(9);
    }
    int status;
    waitpid(child, &status, 0);
    SAY("%#x", status);
}

static void kills(void) {
    TRY(setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 400000}}, NULL));
    pause();
    SAY("not reached");
}

int main(void) {
    manual_begin();
    manual_in_child("errors", errors);
    manual_in_child("real", real);
    manual_in_child("of cpu", of_cpu);
    manual_in_child("inherited", inherited);
    manual_in_child("kills", kills);
    return guest_passed();
}
