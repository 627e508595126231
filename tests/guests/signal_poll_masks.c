// pselect, ppoll and epoll_pwait under a mask of their own: interrupted by a signal that the old
// mask lets through, too, and by one that only the call's lets through.
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>

#include "guest.h"

static int never_ready, epoll;
static volatile int users, with_mask;

static void on_alarm(int number) {
    (void)number;
    sigset_t in_handler;
    sigprocmask(SIG_BLOCK, NULL, &in_handler);
    CHECK_EQ(sigismember(&in_handler, SIGALRM), 1);
    if (sigismember(&in_handler, SIGUSR2)) with_mask++;  // others came before the call, or after it
}
static void on_user(int number) { users += number; }

enum { calls = 3 };

static int wait_by(int call, const sigset_t* mask) {
    if (call == 0) {
        fd_set set;
        FD_ZERO(&set);
        FD_SET(never_ready, &set);
        return pselect(never_ready + 1, &set, NULL, NULL, NULL, mask);
    }
    if (call == 1) {
        struct pollfd fd = {never_ready, POLLIN, 0};
        return ppoll(&fd, 1, NULL, mask);
    }
    struct epoll_event event;
    return epoll_pwait(epoll, &event, 1, -1, mask);
}

static void alarm_every(int milliseconds) {
    struct itimerval timer = {{0, milliseconds * 1000}, {0, milliseconds * 1000}};
    CHECK_EQ(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

// The handler runs under the call's mask, and afterwards the old one is in force.
static void interrupt(int call, int blocked_outside) {
    sigset_t outside, inside, now;
    sigemptyset(&outside);
    if (blocked_outside) sigaddset(&outside, SIGALRM);
    sigemptyset(&inside);
    sigaddset(&inside, SIGUSR2);
    CHECK_EQ(sigprocmask(SIG_SETMASK, &outside, NULL), 0);
    with_mask = 0;
    alarm_every(30);
    CHECK_ERRNO(wait_by(call, &inside), EINTR);
    alarm_every(0);
    CHECK(with_mask > 0);
    CHECK_EQ(sigprocmask(SIG_SETMASK, NULL, &now), 0);
    CHECK_EQ(sigismember(&now, SIGALRM), blocked_outside);
    CHECK_EQ(sigismember(&now, SIGUSR2), 0);
}

static void two_at_once(int call) {
    sigset_t both, none;
    sigemptyset(&none);
    sigemptyset(&both);
    sigaddset(&both, SIGUSR1);
    sigaddset(&both, SIGUSR2);
    CHECK_EQ(sigprocmask(SIG_SETMASK, &both, NULL), 0);
    users = 0;
    raise(SIGUSR1);
    raise(SIGUSR2);
    CHECK_EQ(users, 0);
    CHECK_ERRNO(wait_by(call, &none), EINTR);
    CHECK_EQ(users, SIGUSR1 + SIGUSR2);
}

int main(void) {
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    never_ready = ends[0];
    epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, never_ready, &event), 0);
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    signal(SIGUSR1, on_user);
    signal(SIGUSR2, on_user);
    for (int call = 0; call < calls; call++) {
        interrupt(call, 0);
        interrupt(call, 1);
        two_at_once(call);
    }
    return guest_passed();
}
