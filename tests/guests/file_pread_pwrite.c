// Positioned I/O does not move the file position; holes read as zeros.
#include <fcntl.h>

#include "guest.h"

int main(void) {
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(pwrite(fd, "tail", 4, 1 << 20), 4);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 0);
    char back[16];
    memset(back, 'x', sizeof back);
    CHECK_EQ(pread(fd, back, 8, (1 << 20) - 4), 8);
    CHECK(memcmp(back, "\0\0\0\0tail", 8) == 0);
    CHECK_EQ(pread(fd, back, 8, (1 << 20) + 2), 2);
    CHECK_EQ(pread(fd, back, 8, (1 << 20) + 4), 0);
    CHECK_ERRNO(pread(fd, back, 8, -1), EINVAL);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 0);
    CHECK_EQ(ftruncate(fd, 10), 0);
    CHECK_EQ(lseek(fd, 0, SEEK_END), 10);
    return guest_passed();
}
