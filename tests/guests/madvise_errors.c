// What each advice says about each kind of memory: results that depend on what a mapping is.
#include <fcntl.h>
#include <sys/mman.h>

#include "guest.h"

enum { PAGE = 4096, SIZE = 4 * PAGE, LAST_ADVICE = 25 };

static int fd;

static char* map(int prot, int flags) {
    char* memory = mmap(NULL, SIZE, prot, flags, flags & MAP_ANONYMOUS ? -1 : fd, 0);
    CHECK(memory != MAP_FAILED);
    if (prot & PROT_WRITE) memory[PAGE] = 1;
    return memory;
}

static void advise(const char* kind, int prot, int flags, size_t locked, size_t gap) {
    printf("%s:", kind);
    for (int advice = 0; advice <= LAST_ADVICE; advice++) {
        char* memory = map(prot, flags);
        if (locked) CHECK_EQ(mlock(memory, locked), 0);
        if (gap) CHECK_EQ(munmap(memory + 2 * PAGE, gap), 0);
        printf(" %d", madvise(memory, SIZE, advice) == 0 ? 0 : errno);
        CHECK_EQ(munmap(memory, SIZE), 0);
    }
    printf("\n");
}

int main(void) {
    enum { READ = PROT_READ, BOTH = PROT_READ | PROT_WRITE };
    enum { PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS, SHARED = MAP_SHARED | MAP_ANONYMOUS };
    fd = open("data", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK_EQ(ftruncate(fd, SIZE), 0);
    advise("private", BOTH, PRIVATE, 0, 0);
    advise("private, read only", READ, PRIVATE, 0, 0);
    advise("private, no access", PROT_NONE, PRIVATE, 0, 0);
    advise("private, locked", BOTH, PRIVATE, SIZE, 0);
    advise("private, with a gap", BOTH, PRIVATE, 0, PAGE);
    advise("shared", BOTH, SHARED, 0, 0);
    advise("shared, read only", READ, SHARED, 0, 0);
    advise("shared, locked in part", BOTH, SHARED, PAGE, 0);
    advise("shared, with a gap", BOTH, SHARED, 0, PAGE);
    advise("file", BOTH, MAP_PRIVATE, 0, 0);
    advise("file, read only", READ, MAP_PRIVATE, 0, 0);
    advise("shared file", BOTH, MAP_SHARED, 0, 0);
    char* memory = map(BOTH, PRIVATE);
    for (int advice = 0; advice <= LAST_ADVICE; advice++) {
        CHECK_ERRNO(madvise(memory + 1, PAGE, advice), EINVAL);
        CHECK_ERRNO(madvise(memory, SIZE_MAX, advice), EINVAL);
        int unknown = advice > MADV_DONTNEED && advice < MADV_FREE;
        CHECK_EQ(madvise(memory, 0, advice), unknown ? -1 : 0);
    }
    return guest_passed();
}
