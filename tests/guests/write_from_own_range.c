// write and its kin from memory that shows the very part of the file that is written.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "guest.h"

enum { PAGE = 4096, PAGES = 8 };

static void with(int kind, int prot) {
    static char expected[PAGES * PAGE], file[PAGES * PAGE];
    int fd = open("data", O_RDWR | O_CREAT | O_TRUNC, 0600);
    guest_fill(expected, sizeof expected, 1);
    CHECK_EQ(write(fd, expected, sizeof expected), sizeof expected);
    char* memory = mmap(NULL, PAGES * PAGE, prot, kind, fd, 0);
    CHECK(memory != MAP_FAILED);
    uint64_t state = 77;
    for (int round = 0; round < 60; round++) {
        size_t size = guest_random(&state) % (3 * PAGE) + 1;
        size_t from = guest_random(&state) % (PAGES * PAGE - size);
        size_t to = round % 3 == 0 ? from : guest_random(&state) % (PAGES * PAGE - size);
        if (round % 4 == 0) CHECK_EQ(memory[from], expected[from]);
        // Where parts overlap and go upwards, the kernel writes what it has just written.
        if (to > from && to - from < size) continue;
        int way = (int)(guest_random(&state) % 3);
        if (way == 0) CHECK_EQ(pwrite(fd, memory + from, size, (off_t)to), size);
        if (way == 1) {
            CHECK_EQ(lseek(fd, (off_t)to, SEEK_SET), to);
            CHECK_EQ(write(fd, memory + from, size), size);
        }
        if (way == 2) {
            struct iovec parts[2] = {{memory + from, size / 2},
                                     {memory + from + size / 2, size - size / 2}};
            CHECK_EQ(pwritev(fd, parts, 2, (off_t)to), size);
        }
        memmove(expected + to, expected + from, size);
        CHECK_EQ(pread(fd, file, sizeof file, 0), sizeof file);
        CHECK_EQ(memcmp(file, expected, sizeof file), 0);
        if (kind == MAP_SHARED) CHECK_EQ(memcmp(memory, expected, sizeof file), 0);
        if (kind == MAP_PRIVATE) {
            CHECK_EQ(munmap(memory, PAGES * PAGE), 0);
            CHECK(mmap(memory, PAGES * PAGE, prot, kind | MAP_FIXED, fd, 0) == memory);
        }
        if (prot & PROT_WRITE && kind == MAP_SHARED) {
            size_t at = guest_random(&state) % sizeof expected;
            memory[at] = expected[at] = (char)round;
        }
    }
    CHECK_EQ(munmap(memory, PAGES * PAGE), 0);
    CHECK_EQ(close(fd), 0);
}

// Upwards into itself: what comes out depends on how much the kernel copies at once.
static void write_upwards(void) {
    static char content[PAGES * PAGE];
    int fd = open("data", O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (int far = 500; far < 5000; far += 700) {
        guest_fill(content, sizeof content, (uint64_t)far);
        CHECK_EQ(pwrite(fd, content, sizeof content, 0), sizeof content);
        char* memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        CHECK_EQ(pwrite(fd, memory + PAGE, 3 * PAGE, PAGE + far), 3 * PAGE);
        CHECK_EQ(lseek(fd, 5 * PAGE + far % 100, SEEK_SET), 5 * PAGE + far % 100);
        CHECK_EQ(write(fd, memory + 5 * PAGE, 2 * PAGE), 2 * PAGE);
        CHECK_EQ(pread(fd, content, sizeof content, 0), sizeof content);
        CHECK_EQ(memcmp(memory, content, sizeof content), 0);
        uint32_t sum = 0;
        for (size_t i = 0; i < sizeof content; i++) sum = sum * 31 + (unsigned char)content[i];
        printf("%d: %08x\n", far, sum);
        CHECK_EQ(munmap(memory, PAGES * PAGE), 0);
    }
    CHECK_EQ(close(fd), 0);
}

int main(void) {
    with(MAP_SHARED, PROT_READ | PROT_WRITE);
    with(MAP_SHARED, PROT_READ);
    with(MAP_PRIVATE, PROT_READ);
    with(MAP_PRIVATE, PROT_READ | PROT_WRITE);
    write_upwards();
    return guest_passed();
}
