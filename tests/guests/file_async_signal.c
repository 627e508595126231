// O_ASYNC: SIGIO with the fd in its siginfo when a pipe becomes readable.
#include <fcntl.h>
#include <signal.h>

#include "guest.h"

static volatile int got, got_fd;
static void on_io(int number, siginfo_t* info, void* context) {
    got_fd = info->si_fd;
    got = number;
}

int main(void) {
    int fds[2];
    struct sigaction action = {.sa_sigaction = on_io, .sa_flags = SA_SIGINFO};
    CHECK_EQ(sigaction(SIGRTMIN, &action, NULL), 0);
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(fcntl(fds[0], F_SETOWN, getpid()), 0);
    CHECK_EQ(fcntl(fds[0], F_SETSIG, SIGRTMIN), 0);
    CHECK_EQ(fcntl(fds[0], F_SETFL, O_ASYNC | O_NONBLOCK), 0);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    for (int i = 0; i < 1000 && !got; i++) usleep(1000);
    CHECK_EQ(got, SIGRTMIN);
    CHECK_EQ(got_fd, fds[0]);
    CHECK_EQ(fcntl(fds[0], F_GETOWN), getpid());
    return guest_passed();
}
