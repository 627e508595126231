// Address space reserved as sanitizers, Go, the JVM and databases do: TiB at once, of which little
// is ever used, and as much in all as Linux gives.
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
enum { PAGE = 4096, RESERVE = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };
static const size_t GIB = 1ul << 30, TIB = 1ul << 40;

static char* reserve(size_t size, int prot, int flags) {
    char* memory = mmap(NULL, size, prot, flags, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void touch(char* memory, size_t size, char value) {
    size_t step = size / 8 / PAGE * PAGE;
    for (size_t at = 0; at < size; at += step) memory[at] = value;
    memory[size - 1] = value;
}

static void check(const char* memory, size_t size, char value) {
    size_t step = size / 8 / PAGE * PAGE;
    for (size_t at = 0; at < size; at += step) CHECK_EQ(memory[at], value);
    CHECK_EQ(memory[size - 1], value);
    CHECK_EQ(memory[step / 2], 0);
}

static void in_child(char* memory, size_t size) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        check(memory, size, 5);
        usleep(60000);  // it is split by then
        check(memory, size, 5);
        touch(memory, size, 6);
        check(memory, size, 6);
        CHECK(reserve(2 * TIB, PROT_NONE, RESERVE));
        _exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    check(memory, size, 5);
}

static void use(size_t size) {
    char* memory = reserve(size, PROT_NONE, RESERVE);
    CHECK(memory != NULL);
    CHECK_EQ(madvise(memory, size, MADV_DONTDUMP), 0);
    CHECK_EQ(madvise(memory, size, MADV_NOHUGEPAGE), 0);
    CHECK_EQ(mprotect(memory, size, PROT_READ | PROT_WRITE), 0);
    touch(memory, size, 5);
    check(memory, size, 5);
    in_child(memory, size);
    CHECK_EQ(madvise(memory, size, MADV_DONTNEED), 0);
    check(memory, size, 0);
    touch(memory, size, 7);
    CHECK_EQ(mprotect(memory + size / 4, size / 4, PROT_NONE), 0);
    CHECK_EQ(munmap(memory + size / 2, size / 2), 0);
    CHECK_EQ(memory[0], 7);
    char* again =
        mmap(memory + size / 2, size / 2, PROT_READ, RESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(again == memory + size / 2);
    CHECK_EQ(again[0], 0);
    CHECK_EQ(munmap(memory, size), 0);
}

static void grow(void) {
    char* memory = reserve(512 * GIB, PROT_READ | PROT_WRITE, RESERVE);
    touch(memory, 512 * GIB, 8);
    memory = mremap(memory, 512 * GIB, 3 * TIB, MREMAP_MAYMOVE);
    CHECK(memory != MAP_FAILED);
    check(memory, 512 * GIB, 8);
    CHECK_EQ(memory[3 * TIB - 1], 0);
    memory[2 * TIB] = 9;
    char* moved = reserve(4 * TIB, PROT_NONE, RESERVE);
    CHECK(mremap(memory, 3 * TIB, 3 * TIB, MREMAP_MAYMOVE | MREMAP_FIXED, moved) == moved);
    check(moved, 512 * GIB, 8);
    CHECK_EQ(moved[2 * TIB], 9);
    CHECK_EQ(munmap(moved, 4 * TIB), 0);
}

// Where ThreadSanitizer has its shadow, and what it keeps others away from.
static void at_fixed_places(void) {
    static const uint64_t begin[] = {0x010000000000, 0x300000000000, 0x340000000000,
                                     0x7c0000000000};
    static const uint64_t end[] = {0x200000000000, 0x340000000000, 0x550000000000, 0x7e8000000000};
    for (int i = 0; i < 4; i++) {
        char* at = (char*)begin[i];
        size_t size = end[i] - begin[i];
        CHECK(mmap(at, size, PROT_READ | PROT_WRITE, RESERVE | MAP_FIXED_NOREPLACE, -1, 0) == at);
        touch(at, size, 3);
        CHECK(mmap(at, size, PROT_NONE, RESERVE | MAP_FIXED, -1, 0) == at);
    }
    char* small = reserve(PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    CHECK(small >= (char*)end[3]);  // as it must be for that
    for (int i = 0; i < 4; i++) CHECK_EQ(munmap((char*)begin[i], end[i] - begin[i]), 0);
}

static void in_all(void) {
    enum { MOST = 32 };
    char* pieces[MOST];
    int count = 0;
    while (count < MOST && (pieces[count] = reserve(8 * TIB, PROT_NONE, RESERVE))) count++;
    CHECK_EQ(errno, ENOMEM);
    printf("%d times 8 TiB\n", count);
    for (int i = 0; i < 100; i++) {  // of small ones there are still many
        char* small = reserve(64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
        CHECK(small != NULL);
        small[i * PAGE / 2] = 1;
    }
    for (int i = 0; i < count; i++) CHECK_EQ(munmap(pieces[i], 8 * TIB), 0);
}

int main(void) {
    static const size_t sizes[] = {1ul << 40, 1ul << 42, 1ul << 44, 1ul << 46};
    for (int i = 0; i < 4; i++) {
        use(sizes[i]);
        printf("%zu TiB\n", sizes[i] / TIB);
    }
    grow();
    at_fixed_places();
    in_all();
    CHECK(reserve(200 * TIB, PROT_NONE, RESERVE) == NULL);
    CHECK_EQ(errno, ENOMEM);
    // What is to be had, and not only reserved, is more than any host has.
    char* memory = reserve(60 * TIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    printf("60 TiB to use: %s\n", memory ? "yes" : "no");
    return guest_passed();
}
