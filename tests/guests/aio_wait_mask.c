// io_pgetevents(2) waits under the signal mask that it is given: a signal that only this mask lets
// through ends the wait, and its handler has run; one that the mask blocks does not.
#include <linux/aio_abi.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "guest.h"

static volatile sig_atomic_t handled;

static void handle(int signal) {
    (void)signal;
    handled++;
}

int main(void) {
    aio_context_t context = 0;
    CHECK_EQ(syscall(SYS_io_setup, 4, &context), 0);
    struct sigaction action = {.sa_handler = handle};
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    sigset_t alarm_only, none, before, after;
    sigemptyset(&none);
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &alarm_only, &before), 0);
    struct {
        const sigset_t* mask;
        size_t size;
    } through = {&none, 8}, blocked = {&alarm_only, 8};
    struct itimerval soon = {{0, 0}, {0, 50000}};
    struct timespec long_enough = {20, 0}, a_moment = {0, 150000000};
    struct io_event event;

    CHECK_EQ(setitimer(ITIMER_REAL, &soon, NULL), 0);
    CHECK_ERRNO(syscall(SYS_io_pgetevents, context, 1, 1, &event, &long_enough, &through), EINTR);
    CHECK_EQ(handled, 1);
    CHECK_EQ(sigprocmask(SIG_SETMASK, NULL, &after), 0);
    CHECK(sigismember(&after, SIGALRM) == 1);

    CHECK_EQ(sigprocmask(SIG_SETMASK, &before, NULL), 0);
    CHECK_EQ(setitimer(ITIMER_REAL, &soon, NULL), 0);
    CHECK_EQ(syscall(SYS_io_pgetevents, context, 1, 1, &event, &a_moment, &blocked), 0);
    CHECK_EQ(handled, 2);
    CHECK_EQ(syscall(SYS_io_destroy, context), 0);
    return guest_passed();
}
