// A read into memory that is not there fails, and leaves the file's offset where it was.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "guest.h"

enum { PAGE = 4096, PAGES = 4 };

int main(void) {
    int fd = open("data", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK_EQ(write(fd, "0123456789", 10), 10);
    CHECK_EQ(close(fd), 0);
    int mapped = open("short", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK_EQ(write(mapped, "x", 1), 1);
    int kinds[] = {MAP_PRIVATE, MAP_SHARED};
    for (int i = 0; i < 2; i++) {
        char* memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, kinds[i], mapped, 0);
        CHECK(memory != MAP_FAILED);
        fd = open("data", O_RDONLY);
        char bytes[4];
        CHECK_EQ(read(fd, bytes, 2), 2);
        CHECK_ERRNO(read(fd, memory + 2 * PAGE, 4), EFAULT);
        CHECK_EQ(lseek(fd, 0, SEEK_CUR), 2);
        CHECK_ERRNO(pread(fd, memory + PAGE, 4, 0), EFAULT);
        struct iovec parts[2] = {{memory + 3 * PAGE, 2}, {bytes, 2}};
        CHECK_ERRNO(readv(fd, parts, 2), EFAULT);
        CHECK_EQ(lseek(fd, 0, SEEK_CUR), 2);
        CHECK_EQ(read(fd, bytes, 4), 4);
        CHECK_EQ(memcmp(bytes, "2345", 4), 0);
        CHECK_EQ(close(fd), 0);
        CHECK_EQ(munmap(memory, PAGES * PAGE), 0);
    }
    return guest_passed();
}
