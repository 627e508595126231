// dup, dup2, dup3, fcntl: shared positions, close-on-exec, lowest free number.
#include <fcntl.h>

#include "guest.h"

int main(void) {
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    CHECK_EQ(fd, 3);
    CHECK_EQ(dup(fd), 4);
    CHECK_EQ(write(4, "abcdef", 6), 6);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 6);
    CHECK_EQ(dup2(fd, 20), 20);
    CHECK_EQ(dup2(fd, fd), fd);
    CHECK_ERRNO(dup3(fd, fd, 0), EINVAL);
    CHECK_EQ(dup3(fd, 21, O_CLOEXEC), 21);
    CHECK_EQ(fcntl(21, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(fcntl(20, F_GETFD), 0);
    CHECK_EQ(fcntl(fd, F_DUPFD, 10), 10);
    CHECK_EQ(close(4), 0);
    CHECK_EQ(dup(fd), 4);
    CHECK_EQ(fcntl(fd, F_SETFL, O_APPEND), 0);
    CHECK_EQ(fcntl(20, F_GETFL) & O_APPEND, O_APPEND);
    CHECK_EQ(fcntl(20, F_GETFL) & O_ACCMODE, O_RDWR);
    CHECK_ERRNO(dup2(99, 5), EBADF);
    CHECK_ERRNO(fcntl(99, F_GETFD), EBADF);
    CHECK_EQ(close_range(10, 30, 0), 0);
    CHECK_ERRNO(fcntl(20, F_GETFD), EBADF);
    return guest_passed();
}
