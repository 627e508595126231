// mremap: grow in place or by moving, shrink, move to a fixed place, keep the content.
#include <sys/mman.h>

#include "guest.h"

enum { PAGE = 4096 };

static char* map(size_t pages) {
    char* memory =
        mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

int main(void) {
    char* area = map(64);
    CHECK_EQ(munmap(area, 64 * PAGE), 0);
    char* memory = mmap(area, 4 * PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(memory == area);
    guest_fill(memory, 4 * PAGE, 3);
    CHECK(mremap(memory, 4 * PAGE, 8 * PAGE, 0) == memory);
    CHECK(guest_is_filled(memory, 4 * PAGE, 3) && memory[5 * PAGE] == 0);
    char* wall =
        mmap(area + 8 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(wall == area + 8 * PAGE);
    CHECK(mremap(memory, 8 * PAGE, 16 * PAGE, 0) == MAP_FAILED && errno == ENOMEM);
    char* moved = mremap(memory, 8 * PAGE, 16 * PAGE, MREMAP_MAYMOVE);
    CHECK(moved != MAP_FAILED && moved != memory);
    CHECK(guest_is_filled(moved, 4 * PAGE, 3) && moved[15 * PAGE] == 0);
    CHECK_ERRNO(msync(memory, PAGE, MS_ASYNC), ENOMEM);
    char* target = map(4);
    strcpy(target, "overwritten by the move");
    CHECK(mremap(moved + PAGE, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target) ==
          target);
    CHECK_ERRNO(msync(moved + PAGE, PAGE, MS_ASYNC), ENOMEM);
    char expected[4 * PAGE];
    guest_fill(expected, sizeof expected, 3);
    CHECK(memcmp(target, expected + PAGE, 2 * PAGE) == 0);
    CHECK(memcmp(moved, expected, PAGE) == 0);
    CHECK(mremap(target, 2 * PAGE, PAGE, 0) == target);
    CHECK_ERRNO(msync(target + PAGE, PAGE, MS_ASYNC), ENOMEM);
    char* kept = mremap(target, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0);
    CHECK(kept != MAP_FAILED && memcmp(kept, expected + PAGE, PAGE) == 0);
    CHECK_EQ(target[0], 0);
    size_t size = PAGE;
    char* growing = map(1);
    for (int i = 0; i < 12; i++, size *= 2) {
        growing[size - 1] = (char)i;
        growing = mremap(growing, size, size * 2, MREMAP_MAYMOVE);
        CHECK(growing != MAP_FAILED && growing[size - 1] == (char)i);
    }
    return guest_passed();
}
