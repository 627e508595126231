// A signal during read: EINTR without SA_RESTART, a restart with it; nanosleep tells what is left.
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "guest.h"

static volatile int alarms, writes_at;
static int fds[2];

static void on_alarm(int number) {
    if (++alarms == writes_at) write(fds[1], "x", 1);
}

static void arm(int flags, long delay_us, long again_us) {
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = flags};
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    struct itimerval timer = {.it_value = {0, delay_us}, .it_interval = {0, again_us}};
    CHECK_EQ(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

// The timer goes on: the first time it may be over before the call begins.
int main(void) {
    char byte;
    CHECK_EQ(pipe(fds), 0);
    arm(0, 20000, 20000);
    CHECK_ERRNO(read(fds[0], &byte, 1), EINTR);
    arm(SA_RESTART, 0, 0);
    alarms = 0;
    writes_at = 1;
    arm(SA_RESTART, 20000, 0);
    CHECK_EQ(read(fds[0], &byte, 1), 1);
    CHECK_EQ(alarms, 1);
    writes_at = 3;
    arm(SA_RESTART, 20000, 20000);
    CHECK_EQ(read(fds[0], &byte, 1), 1);
    CHECK(alarms >= 3);
    struct timespec sleep_time = {5, 0}, left = {0, 0};
    CHECK_ERRNO(nanosleep(&sleep_time, &left), EINTR);
    CHECK(left.tv_sec == 4 && left.tv_nsec > 0);
    CHECK_ERRNO(pause(), EINTR);
    return guest_passed();
}
