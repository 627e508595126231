// MADV_DONTNEED, and MADV_DONTNEED_LOCKED, on parts of a private file mapping: what was written
// there is gone, what the file holds by now is back, what lies beside it stays, also past the
// file's end.
#include <fcntl.h>
#include <sys/mman.h>

#include "guest.h"

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

enum { PAGE = 4096, PAGES = 8 };

int main(void) {
    static char expected[PAGES * PAGE];
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    guest_fill(expected, 6 * PAGE + 100, 1);
    CHECK_EQ(write(fd, expected, 6 * PAGE + 100), 6 * PAGE + 100);
    char* file = mmap(NULL, (PAGES - 2) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, PAGE);
    CHECK(file != MAP_FAILED);
    for (int round = 0; round < 6; round++) {
        const int drop = round % 2 == 0 ? MADV_DONTNEED : MADV_DONTNEED_LOCKED;
        guest_fill(file, 6 * PAGE, 50 + (uint64_t)round);
        CHECK_EQ(madvise(file + 2 * PAGE, 2 * PAGE, drop), 0);
        CHECK_EQ(memcmp(file + 2 * PAGE, expected + 3 * PAGE, 2 * PAGE), 0);
        CHECK_EQ(madvise(file + 5 * PAGE, 10, drop), 0);
        CHECK_EQ(memcmp(file + 5 * PAGE, expected + 6 * PAGE, PAGE), 0);
        CHECK_EQ(madvise(file, PAGE, drop), 0);
        CHECK_EQ(memcmp(file, expected + PAGE, PAGE), 0);
        guest_fill(expected, sizeof expected, 50 + (uint64_t)round);
        CHECK_EQ(memcmp(file + PAGE, expected + PAGE, PAGE), 0);
        CHECK_EQ(memcmp(file + 4 * PAGE, expected + 4 * PAGE, PAGE), 0);
        memset(expected, 0, sizeof expected);
        guest_fill(expected, 6 * PAGE + 100, 100 + (uint64_t)round);
        CHECK_EQ(pwrite(fd, expected, 6 * PAGE + 100, 0), 6 * PAGE + 100);
        CHECK_EQ(madvise(file, 6 * PAGE, drop), 0);
        CHECK_EQ(memcmp(file, expected + PAGE, 6 * PAGE), 0);
    }
    return guest_passed();
}
