// Pipes: capacity, non-blocking ends, EOF, EPIPE, atomic small writes.
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "guest.h"

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    int fds[2];
    CHECK_EQ(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
    char data[4096];
    CHECK_ERRNO(read(fds[0], data, 1), EAGAIN);
    int total = 0;
    ssize_t wrote;
    while ((wrote = write(fds[1], data, sizeof data)) > 0) total += (int)wrote;
    CHECK_EQ(errno, EAGAIN);
    CHECK_EQ(total, 65536);
    int available = 0;
    CHECK_EQ(ioctl(fds[0], FIONREAD, &available), 0);
    CHECK_EQ(available, 65536);
    while (read(fds[0], data, sizeof data) > 0) {
    }
    CHECK_EQ(fcntl(fds[0], F_GETPIPE_SZ), 65536);
    CHECK_EQ(write(fds[1], "last", 4), 4);
    CHECK_EQ(close(fds[1]), 0);
    CHECK_EQ(read(fds[0], data, sizeof data), 4);
    CHECK_EQ(read(fds[0], data, sizeof data), 0);
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(close(fds[0]), 0);
    CHECK_ERRNO(write(fds[1], "x", 1), EPIPE);
    return guest_passed();
}
