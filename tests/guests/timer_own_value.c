// A timer without a sigevent sends its own id as the value, timer_create(2); one of each clock.
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"

static volatile sig_atomic_t value, timer, seen;

static void handle(int signal, siginfo_t* info, void* context) {
    (void)signal;
    (void)context;
    value = info->si_value.sival_int;
    timer = info->si_timerid;
    seen = 1;
}

int main(void) {
    alarm(30);
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    alarm(0);
    const int clocks[] = {CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID};
    for (int i = 0; i < 3; i++) {
        int id = -1;  // the kernel's, not the C library's
        CHECK_EQ(syscall(SYS_timer_create, clocks[i], NULL, &id), 0);
        struct itimerspec soon = {.it_value = {0, 20000000}};
        seen = 0;
        CHECK_EQ(syscall(SYS_timer_settime, id, 0, &soon, NULL), 0);
        while (!seen) guest_compute(1);
        CHECK_EQ(timer, id);
        CHECK_EQ(value, id);
        CHECK_EQ(syscall(SYS_timer_delete, id), 0);
    }
    return guest_passed();
}
