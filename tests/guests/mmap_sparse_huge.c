// Shared memory that is far larger than any machine, of which hardly anything is used: to map it,
// to change its protection or size and to unmap it costs what was used.
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "guest.h"

#define TERABYTE (1ULL << 40)
enum { STEPS = 16, PAGE = 4096 };

static char* map(int fd, uint64_t size) {
    int flags = MAP_SHARED | MAP_NORESERVE | (fd < 0 ? MAP_ANONYMOUS : 0);
    char* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static void use(char* memory, uint64_t size, char seed) {
    for (uint64_t i = 0; i < STEPS; i++) memory[size / STEPS * i] = (char)(seed + i);
    memory[size - 1] = seed;
}

static void check(const char* memory, uint64_t size, char seed) {
    for (uint64_t i = 0; i < STEPS; i++) CHECK_EQ(memory[size / STEPS * i], (char)(seed + i));
    CHECK_EQ(memory[size - 1], seed);
    CHECK_EQ(memory[size / 2 + PAGE], 0);
}

int main(void) {
    char* nameless = map(-1, TERABYTE);
    use(nameless, TERABYTE, 1);
    int fd = memfd_create("sparse", 0);
    CHECK(fd >= 0 && ftruncate(fd, TERABYTE) == 0);
    char* first = map(fd, TERABYTE);
    char* second = map(fd, TERABYTE);
    use(first, TERABYTE, 2);
    check(second, TERABYTE, 2);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        check(nameless, TERABYTE, 1);
        use(nameless, TERABYTE, 3);
        use(second, TERABYTE, 4);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    check(nameless, TERABYTE, 3);
    check(first, TERABYTE, 4);
    CHECK_EQ(mprotect(first, TERABYTE, PROT_READ), 0);
    CHECK_EQ(mprotect(first, TERABYTE, PROT_READ | PROT_WRITE), 0);
    use(first, TERABYTE, 5);
    check(second, TERABYTE, 5);
    CHECK_EQ(ftruncate(fd, TERABYTE / 2), 0);
    CHECK_EQ(ftruncate(fd, TERABYTE), 0);
    CHECK_EQ(second[0], 5);
    CHECK_EQ(second[TERABYTE / 2], 0);
    CHECK_EQ(first[TERABYTE - 1], 0);
    first[TERABYTE - 1] = 6;
    CHECK_EQ(second[TERABYTE - 1], 6);
    char* moved = mremap(first, TERABYTE, TERABYTE, MREMAP_MAYMOVE);
    CHECK(moved == first);
    CHECK_EQ(madvise(second + TERABYTE / 4, TERABYTE / 4, MADV_DONTNEED), 0);
    CHECK_EQ(second[TERABYTE / 4], 5 + STEPS / 4);
    CHECK_EQ(munmap(first, TERABYTE), 0);
    CHECK_EQ(second[TERABYTE - 1], 6);
    CHECK_EQ(munmap(second, TERABYTE), 0);
    for (int i = 0; i < 10; i++) {
        char* again = map(fd, TERABYTE);
        CHECK_EQ(again[TERABYTE - 1], 6);
        CHECK_EQ(munmap(again, TERABYTE), 0);
    }
    check(nameless, TERABYTE, 3);
    CHECK_EQ(munmap(nameless, TERABYTE), 0);
    return guest_passed();
}
