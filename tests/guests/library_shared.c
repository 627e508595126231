// A remote library and the program use shared memory in turn: without a name, and of a file.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"
#include "libgprguest.h"

enum { PAGES = 40, BYTES = PAGES * 4096, WORDS = BYTES / 8 };

static void use_in_turn(uint64_t* shared) {
    for (int round = 1; round <= 20; round++) {
        remote_fill(shared, BYTES, round);
        uint64_t filled = 0x0101010101010101 * (uint64_t)round;
        for (int i = 0; i < WORDS; i += 100) CHECK_EQ(shared[i], filled);
        for (int i = 0; i < WORDS; i++) shared[i] = (uint64_t)i * (uint64_t)round;
        uint64_t sum = (uint64_t)WORDS * (WORDS - 1) / 2 * (uint64_t)round;
        CHECK_EQ(remote_sum(shared, WORDS), sum);
    }
}

int main(void) {
    uint64_t* shared = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    use_in_turn(shared);
    pid_t child = fork();
    if (child == 0) {
        use_in_turn(shared);
        remote_fill(shared, BYTES, 77);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(shared[WORDS - 1], 77 * 0x0101010101010101);

    int fd = open("shared", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK_EQ(ftruncate(fd, BYTES), 0);
    uint64_t* file = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(file != MAP_FAILED);
    use_in_turn(file);
    remote_fill(file, BYTES, 5);
    char byte = 0;
    CHECK_EQ(pread(fd, &byte, 1, BYTES - 1), 1);
    CHECK_EQ(byte, 5);
    CHECK_EQ(pwrite(fd, "\t", 1, 4096), 1);
    CHECK_EQ(remote_sum(file + 512, 1), 0x0505050505050509);
    CHECK_EQ(munmap(file, BYTES), 0);
    CHECK_EQ(close(fd), 0);
    return guest_passed();
}
