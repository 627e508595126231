// One write and one read of 5 MiB + 123 bytes, and short reads of the same file.
#include <fcntl.h>

#include "guest.h"

enum { SIZE = (5 << 20) + 123 };

int main(void) {
    char* data = malloc(SIZE);
    char* back = malloc(SIZE);
    guest_fill(data, SIZE, 3);
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    CHECK_EQ(write(fd, data, SIZE), SIZE);
    CHECK_EQ(pread(fd, back, SIZE, 0), SIZE);
    CHECK(memcmp(data, back, SIZE) == 0);
    memset(back, 0, SIZE);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    ssize_t at = 0, got;
    while ((got = read(fd, back + at, 77777)) > 0) at += got;
    CHECK_EQ(got, 0);
    CHECK_EQ(at, SIZE);
    CHECK(memcmp(data, back, SIZE) == 0);
    free(data);
    free(back);
    return guest_passed();
}
