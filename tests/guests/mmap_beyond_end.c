// Whole pages beyond the end of a private mapping's file: SIGBUS, or EFAULT of a system call; once
// the file is long enough there is memory, and none where it was made shorter.
#include <fcntl.h>
#include <sys/mman.h>

#include "bus_error.h"
#include "guest.h"

enum { PAGE = 4096, PAGES = 6 };

static void with(int prot) {
    int fd = open("data", O_RDWR | O_CREAT | O_TRUNC, 0600);
    int null = open("/dev/null", O_WRONLY), zero = open("/dev/zero", O_RDONLY), pair[2];
    CHECK_EQ(pipe(pair), 0);
    CHECK_EQ(ftruncate(fd, PAGE + 100), 0);
    CHECK_EQ(pwrite(fd, "x", 1, PAGE), 1);
    char* memory = mmap(NULL, PAGES * PAGE, prot, MAP_PRIVATE, fd, 0);
    CHECK(memory != MAP_FAILED);
    int writes = prot & PROT_WRITE ? 1 : 0;
    CHECK_EQ(look(memory + PAGE, 0), 'x');
    CHECK_EQ(look(memory + PAGE + 100, 0), 0);
    CHECK_EQ(look(memory + 2 * PAGE - 1, 0), 0);
    for (int i = 2; i < PAGES; i++) {
        CHECK_EQ(look(memory + i * PAGE + i, 0), -1);
        CHECK_EQ(look(memory + i * PAGE + i, writes), -1);
    }
    // The kernel uses it.
    CHECK_ERRNO(write(pair[1], memory + 3 * PAGE, 10), EFAULT);
    if (writes) CHECK_ERRNO(read(zero, memory + 3 * PAGE, 10), EFAULT);
    CHECK_ERRNO(open(memory + 4 * PAGE, O_RDONLY), EFAULT);
    // It grows.
    CHECK_EQ(ftruncate(fd, 4 * PAGE), 0);
    CHECK_EQ(pwrite(fd, "y", 1, 3 * PAGE), 1);
    CHECK_EQ(look(memory + 3 * PAGE, 0), 'y');
    CHECK_EQ(look(memory + 2 * PAGE, 0), 0);
    CHECK_EQ(write(pair[1], memory + 3 * PAGE, 10), 10);
    CHECK_EQ(look(memory + 4 * PAGE, writes), -1);
    CHECK_EQ(pwrite(fd, "z", 1, 4 * PAGE), 1);
    CHECK_EQ(look(memory + 4 * PAGE, 0), 'z');
    CHECK_EQ(look(memory + 5 * PAGE, 0), -1);
    // And it gets shorter, also where it was written.
    if (writes) memory[2 * PAGE] = 7;
    CHECK_EQ(ftruncate(fd, PAGE), 0);
    for (int i = 1; i < PAGES; i++) CHECK_EQ(look(memory + i * PAGE, 0), -1);
    CHECK_EQ(look(memory, 0), 0);
    CHECK_EQ(ftruncate(fd, 3 * PAGE), 0);
    CHECK_EQ(look(memory + 2 * PAGE, 0), 0);
    CHECK_EQ(look(memory + 2 * PAGE, writes), writes ? 5 : 0);
    CHECK_EQ(look(memory + 3 * PAGE, 0), -1);
    CHECK_EQ(munmap(memory, PAGES * PAGE), 0);
    CHECK_EQ(close(fd) | close(null) | close(zero) | close(pair[0]) | close(pair[1]), 0);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    CHECK_EQ(sigaction(SIGBUS, &action, NULL), 0);
    for (int round = 0; round < 3; round++) {
        with(PROT_READ);
        with(PROT_READ | PROT_WRITE);
    }
    return guest_passed();
}
