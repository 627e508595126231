// Timers that count the time of a process go on, wherever it works.
#include <signal.h>
#include <sys/time.h>

#include "guest.h"

enum { SLICES = 12, SLICE_MS = 30 };

static volatile sig_atomic_t came;

static void on_timer(int number) {
    (void)number;
    came++;
}

static void check(int kind, long seconds) {
    struct itimerval now;
    CHECK_EQ(getitimer(kind, &now), 0);
    CHECK_EQ(now.it_interval.tv_sec, seconds);
    CHECK(now.it_value.tv_sec >= 1990 && now.it_value.tv_sec <= 2000);
}

int main(void) {
    struct itimerval user = {{8, 0}, {2000, 0}}, all = {{9, 0}, {2000, 0}}, old;
    CHECK_EQ(setitimer(ITIMER_VIRTUAL, &user, NULL), 0);  // before it goes anywhere
    guest_compute(SLICE_MS);
    CHECK_EQ(setitimer(ITIMER_PROF, &all, NULL), 0);
    for (int i = 0; i < SLICES; i++) {
        guest_compute(SLICE_MS);
        check(ITIMER_VIRTUAL, 8);
        check(ITIMER_PROF, 9);
    }
    struct itimerval soon = {{0, 20000}, {0, 20000}}, off = {{0, 0}, {0, 0}};
    signal(SIGPROF, on_timer);
    CHECK_EQ(setitimer(ITIMER_PROF, &soon, &old), 0);
    CHECK_EQ(old.it_interval.tv_sec, 9);
    while (came < 3) guest_compute(SLICE_MS);
    CHECK_EQ(setitimer(ITIMER_PROF, &off, NULL), 0);
    check(ITIMER_VIRTUAL, 8);
    return guest_passed();
}
