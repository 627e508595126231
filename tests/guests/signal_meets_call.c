// A signal comes at any moment before, while and after a thread begins a call that blocks: the call
// is interrupted, or the handler has run before it. Never does the call go on without the handler.
#include <signal.h>
#include <sys/time.h>

#include "guest.h"

static int ends[2];
static volatile int handled;

static void on_alarm(int number) {
    handled++;
    write(ends[1], "x", 1);  // also for a read that has not begun yet
}

static void one_round(int delay_us) {
    struct itimerval once = {{0, 0}, {0, delay_us}};
    handled = 0;
    CHECK_EQ(setitimer(ITIMER_REAL, &once, NULL), 0);
    char byte = 0;
    ssize_t got;
    do {
        got = read(ends[0], &byte, 1);
        if (got < 0) CHECK_EQ(errno, EINTR);
    } while (got < 0);
    CHECK_EQ(got, 1);
    CHECK_EQ(byte, 'x');
    CHECK_EQ(handled, 1);
}

int main(void) {
    CHECK_EQ(pipe(ends), 0);
    for (int flags = 0; flags <= 1; flags++) {
        struct sigaction action = {.sa_handler = on_alarm, .sa_flags = flags ? SA_RESTART : 0};
        CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
        for (int delay_us = 1; delay_us <= 1500; delay_us += 3) one_round(delay_us);
    }
    return guest_passed();
}
