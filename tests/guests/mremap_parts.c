// mremap of memory that was mapped piece by piece: neighbours that are alike are one mapping, to
// grow and to move. Those that are not move together, if nothing else is wanted (Linux 6.17).
#include <sys/mman.h>

#include "guest.h"

enum { PAGE = 4096, PARTS = 8, ROUNDS = 10 };

static char* place(size_t pages) {
    char* at = mmap(NULL, pages * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

static char* part(char* at, size_t pages) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    CHECK(mmap(at, pages * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0) == at);
    return at;
}

static char* parts(char* at) {
    for (int i = 0; i < PARTS; i++) guest_fill(part(at + 2 * i * PAGE, 2), PAGE + i, (uint64_t)i);
    return at;
}

static int are_filled(const char* memory) {
    for (int i = 0; i < PARTS; i++)
        if (!guest_is_filled(memory + 2 * i * PAGE, PAGE + i, (uint64_t)i)) return 0;
    return 1;
}

static void is_gone(char* memory, size_t pages) {
    for (size_t i = 0; i < pages; i++)
        CHECK_ERRNO(msync(memory + i * PAGE, PAGE, MS_ASYNC), ENOMEM);
}

static void grow_and_move(void) {
    char* memory = parts(place(4 * PARTS));
    CHECK_EQ(munmap(memory + 2 * PARTS * PAGE, 2 * PARTS * PAGE), 0);
    char* grown = mremap(memory, 2 * PARTS * PAGE, 4 * PARTS * PAGE, MREMAP_MAYMOVE);
    CHECK(grown != MAP_FAILED && are_filled(grown) && grown[4 * PARTS * PAGE - 1] == 0);
    char* target = place(2 * PARTS);
    CHECK(mremap(grown, 2 * PARTS * PAGE, 2 * PARTS * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
                 target) == target);
    CHECK(are_filled(target));
    is_gone(grown, 2 * PARTS);
    CHECK_EQ(munmap(grown + 2 * PARTS * PAGE, 2 * PARTS * PAGE), 0);
    CHECK(mremap(target, 2 * PARTS * PAGE, PAGE, 0) == target);
    is_gone(target + PAGE, 2 * PARTS - 1);
    CHECK(guest_is_filled(target, PAGE, 0));
    CHECK_EQ(munmap(target, PAGE), 0);
}

static void move_unlike(void) {
    char* memory = parts(place(2 * PARTS));
    CHECK_EQ(mprotect(memory + 4 * PAGE, 4 * PAGE, PROT_READ), 0);
    size_t size = 2 * PARTS * PAGE;
    CHECK(mremap(memory, size, 2 * size, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT);
    char* target = place(2 * PARTS);
    char* moved = mremap(memory, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    if (moved == MAP_FAILED && errno == EFAULT) SKIP("the kernel moves one mapping at a time");
    CHECK(moved == target && are_filled(moved));
    is_gone(memory, 2 * PARTS);
    for (int i = 0; i < 5; i++) {
        int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
        CHECK(mremap(memory, size, size, flags, target) == MAP_FAILED && errno == EFAULT);
        CHECK(mremap(memory, size, size, flags, memory) == MAP_FAILED && errno == EINVAL);
    }
    CHECK_EQ(mprotect(moved, size, PROT_READ | PROT_WRITE), 0);
    guest_fill(moved, size, 99);
    CHECK(guest_is_filled(moved, size, 99));
    CHECK_EQ(munmap(moved, size), 0);
}

int main(void) {
    for (int round = 0; round < ROUNDS; round++) {
        grow_and_move();
        move_unlike();
    }
    return guest_passed();
}
