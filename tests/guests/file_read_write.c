// write, lseek, read and append give back what was written.
#include <fcntl.h>

#include "guest.h"

int main(void) {
    char data[10000], back[10000];
    guest_fill(data, sizeof data, 1);
    int fd = open("data", O_RDWR | O_CREAT | O_EXCL, 0644);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, data, sizeof data), sizeof data);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(read(fd, back, sizeof back), sizeof back);
    CHECK(memcmp(data, back, sizeof data) == 0);
    CHECK_EQ(read(fd, back, sizeof back), 0);
    CHECK_EQ(lseek(fd, -100, SEEK_END), sizeof data - 100);
    CHECK_EQ(read(fd, back, sizeof back), 100);
    CHECK(memcmp(data + sizeof data - 100, back, 100) == 0);
    CHECK_EQ(close(fd), 0);
    fd = open("data", O_WRONLY | O_APPEND);
    CHECK_EQ(write(fd, "end", 3), 3);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), sizeof data + 3);
    CHECK_EQ(close(fd), 0);
    CHECK_ERRNO(close(fd), EBADF);
    return guest_passed();
}
