// MADV_DONTNEED zeroes anonymous pages and re-reads file ones; other advice keeps content.
#include <fcntl.h>
#include <sys/mman.h>

#include "guest.h"

enum { PAGE = 4096, PAGES = 64 };

int main(void) {
    char* memory =
        mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < PAGES; i++) memory[i * PAGE + round] = (char)(i + 1);
        CHECK_EQ(madvise(memory + 8 * PAGE, 16 * PAGE, MADV_DONTNEED), 0);
        for (int i = 0; i < PAGES; i++)
            CHECK_EQ(memory[i * PAGE + round], (i >= 8 && i < 24) ? 0 : (char)(i + 1));
    }
    CHECK_EQ(madvise(memory, PAGES * PAGE, MADV_WILLNEED), 0);
    CHECK_EQ(madvise(memory, PAGES * PAGE, MADV_SEQUENTIAL), 0);
    CHECK_EQ(madvise(memory, PAGES * PAGE, MADV_POPULATE_READ), 0);
    CHECK_EQ(memory[0], 1);
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    CHECK_EQ(write(fd, "original", 8), 8);
    char* file = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    strcpy(file, "changed!");
    CHECK_EQ(madvise(file, PAGE, MADV_DONTNEED), 0);
    CHECK_EQ(memcmp(file, "original", 8), 0);
    CHECK_ERRNO(madvise(memory + 1, PAGE, MADV_DONTNEED), EINVAL);
    CHECK_ERRNO(madvise(memory, PAGE, 9999), EINVAL);
    CHECK_EQ(munmap(memory + 4 * PAGE, PAGE), 0);
    CHECK_ERRNO(madvise(memory, PAGES * PAGE, MADV_DONTNEED), ENOMEM);
    CHECK_EQ(memory[0], 0);
    return guest_passed();
}
