// select(2): sets, limits of nfds, timeouts that are updated, pselect's mask, exceptional data.
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>

#include "manual.h"

static fd_set in, out, bad;
static int pipes[2];

static void fill(int a, int b) {
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_ZERO(&bad);
    if (a >= 0) FD_SET(a, &in), FD_SET(a, &bad);
    if (b >= 0) FD_SET(b, &out);
}
static void show(int a, int b) {
    SAY("in %d out %d except %d", FD_ISSET(a, &in) != 0, FD_ISSET(b, &out) != 0,
        FD_ISSET(a, &bad) != 0);
}

static void errors(void) {
    struct timeval none = {0, 0}, negative = {-1, 0}, much = {0, 1000000}, negative_us = {0, -1};
    CHECK_EQ(pipe(pipes), 0);
    TRY(select(-1, NULL, NULL, NULL, &none));
    TRY(select(0, NULL, NULL, NULL, &negative));
    TRY(select(0, NULL, NULL, NULL, &negative_us));
    TRY(select(0, NULL, NULL, NULL, &none));
    fill(pipes[0], pipes[1]);
    TRY(select(pipes[1] + 1, &in, &out, &bad, &much));  // a second: out is ready at once
    show(pipes[0], pipes[1]);
    fill(-1, -1);
    FD_SET(700, &in);
    TRY(select(701, &in, NULL, NULL, &none));
    fill(-1, -1);
    FD_SET(700, &in);
    TRY(select(700, &in, NULL, NULL, &none));  // beyond nfds: not looked at
    TRY(select(1 << 30, NULL, NULL, NULL, &none));
    TRY(select(5, manual_bad_pointer(), NULL, NULL, &none));
    TRY(select(5, NULL, NULL, NULL, manual_bad_pointer()));
    int closed = dup(pipes[0]);
    close(closed);
    fill(closed, -1);
    TRY(select(closed + 1, &in, NULL, NULL, &none));
    TRY(FD_ISSET(closed, &in) != 0);
}

static void readiness(void) {
    CHECK_EQ(pipe(pipes), 0);
    struct timeval short_time = {0, 30000};
    fill(pipes[0], -1);
    TRY(select(pipes[0] + 1, &in, NULL, NULL, &short_time));
    TRY(FD_ISSET(pipes[0], &in) != 0);
    SAY("left %ld.%06ld", (long)short_time.tv_sec, (long)short_time.tv_usec);
    CHECK_EQ(write(pipes[1], "x", 1), 1);
    struct timeval long_time = {100, 0};
    fill(pipes[0], pipes[1]);
    TRY(select(pipes[1] + 1, &in, &out, &bad, &long_time));
    show(pipes[0], pipes[1]);
    SAY("left %d", long_time.tv_sec >= 90);
    close(pipes[1]);
    fill(pipes[0], -1);
    TRY(select(pipes[0] + 1, &in, NULL, &bad, NULL));
    show(pipes[0], pipes[0]);
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    char block[4096] = {0};
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    while (write(ends[0], block, sizeof block) > 0) {
    }
    struct timeval none = {0, 0};
    fill(ends[1], ends[0]);
    TRY(select(ends[0] > ends[1] ? ends[0] + 1 : ends[1] + 1, &in, &out, &bad, &none));
    show(ends[1], ends[0]);
    TRY(shutdown(ends[0], SHUT_WR));
    fill(ends[1], ends[0]);
    TRY(select(ends[0] > ends[1] ? ends[0] + 1 : ends[1] + 1, &in, &out, &bad, &none));
    show(ends[1], ends[0]);
}

static volatile sig_atomic_t handled;
static void count(int number) { handled += number == SIGUSR1 || number == SIGALRM; }

static void signals(void) {
    CHECK_EQ(pipe(pipes), 0);
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    sigset_t blocked, empty;
    sigemptyset(&blocked);
    sigemptyset(&empty);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    raise(SIGUSR1);
    SAY("handled %d", (int)handled);
    struct timespec none = {0, 0}, second = {30, 0};
    fill(pipes[0], -1);
    TRY(pselect(pipes[0] + 1, &in, NULL, NULL, &second, &empty));
    SAY("handled %d, still asked for %d, time %ld", (int)handled, FD_ISSET(pipes[0], &in) != 0,
        (long)second.tv_sec);
    raise(SIGUSR1);
    fill(pipes[0], -1);
    TRY(pselect(pipes[0] + 1, &in, NULL, NULL, &none, &empty));
    SAY("handled %d", (int)handled);
    alarm(1);
    fill(pipes[0], -1);
    TRY(select(pipes[0] + 1, &in, NULL, NULL, NULL));  // never restarted
    SAY("handled %d", (int)handled);
    struct timespec wrong = {0, 1000000000};
    TRY(pselect(0, NULL, NULL, NULL, &wrong, NULL));
    TRY(syscall(SYS_pselect6, 0, NULL, NULL, NULL, NULL, manual_bad_pointer()));
    struct {
        const void* mask;
        size_t size;
    } short_mask = {&empty, 4};
    TRY(syscall(SYS_pselect6, 0, NULL, NULL, NULL, &none, &short_mask));
}

int main(void) {
    manual_begin();
    manual_in_child("errors", errors);
    manual_in_child("readiness", readiness);
    manual_in_child("signals", signals);
    return guest_passed();
}
