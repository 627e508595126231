// Signals come while a thread is on its way to a library and back, and leave its registers alone.
#include <signal.h>
#include <sys/time.h>

#include "guest.h"
#include "libgprguest.h"

enum { CALLS = 300, INTERVAL_US = 1500 };

static volatile sig_atomic_t signals;

static void count(int signal) {
    (void)signal;
    signals++;
    (void)remote_doubles(9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9);
}

static long at_home(long value, void* unused) {
    (void)unused;
    return value + 1;
}

static void set_timer(int interval_us) {
    struct itimerval timer = {{0, interval_us}, {0, interval_us}};
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void call_around(void) {
    for (int i = 0; i < CALLS; i++) {
        CHECK_EQ(remote_add(i, i + 1), 2 * i + 1);
        double sum = remote_doubles(i, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
        CHECK(sum == remote_doubles(0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1) + i);
        if (i % 16 == 0) CHECK_EQ(remote_callback(at_home, NULL, 4), 1 + 2 + 3 + 4);
    }
}

int main(void) {
    struct sigaction action = {.sa_handler = count};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    set_timer(INTERVAL_US);
    call_around();
    while (signals == 0) pause();
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    CHECK(sigprocmask(SIG_BLOCK, &alarm_only, NULL) == 0);
    sig_atomic_t before = signals;
    call_around();
    CHECK_EQ(signals, before);
    CHECK(sigprocmask(SIG_UNBLOCK, &alarm_only, NULL) == 0);
    while (signals == before) pause();
    set_timer(0);
    return guest_passed();
}
