// A child whose time goes by in clock_gettime(2), most of it in the vdso, gets a signal every few
// hundred microseconds for a second, while it may be moved. The clocks never go back, the handler
// is called, and nothing else happens.
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "guest.h"

enum { SECONDS = 1 };

static volatile sig_atomic_t handled;
static void on_signal(int number) {
    struct timespec inside;
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &inside), 0);
    handled += number == SIGALRM;
}

static long long now_ns(clockid_t clock) {
    struct timespec now;
    CHECK_EQ(clock_gettime(clock, &now), 0);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void reads_clocks(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    struct itimerval often = {{0, 700}, {0, 700}}, never = {0};
    CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
    long long begin = now_ns(CLOCK_MONOTONIC), last = begin;
    long long boot = now_ns(CLOCK_BOOTTIME);
    while (last - begin < SECONDS * 1000000000LL) {
        long long now = now_ns(CLOCK_MONOTONIC), since_boot = now_ns(CLOCK_BOOTTIME);
        CHECK(now >= last && since_boot >= boot);
        last = now;
        boot = since_boot;
    }
    CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
    CHECK(handled > 10);
    _exit(0);
}

int main(void) {
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) reads_clocks();
        int status = -1;
        CHECK_EQ(waitpid(child, &status, 0), child);
        printf("child ends with %#x\n", status);
    }
    return guest_passed();
}
