// Anonymous mappings: zero at first, holes, MAP_FIXED over old content, hints, NOREPLACE, errors.
#include <sys/mman.h>

#include "guest.h"

enum { PAGE = 4096 };

int main(void) {
    char* memory =
        mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    for (int i = 0; i < 16 * PAGE; i++) CHECK(memory[i] == 0);
    guest_fill(memory, 16 * PAGE, 1);
    CHECK_EQ(munmap(memory + 4 * PAGE, 2 * PAGE), 0);
    CHECK_EQ(munmap(memory + 4 * PAGE, 2 * PAGE), 0);
    unsigned char state[16];
    CHECK_ERRNO(mincore(memory, 16 * PAGE, state), ENOMEM);
    char* hole = mmap(memory + 4 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(hole == memory + 4 * PAGE);
    for (int i = 0; i < 2 * PAGE; i++) CHECK(hole[i] == 0);
    CHECK(mmap(memory, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) ==
              MAP_FAILED &&
          errno == EEXIST);
    char* over = mmap(memory + 8 * PAGE, PAGE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(over == memory + 8 * PAGE && over[5] == 0);
    CHECK(guest_is_filled(memory, 4 * PAGE, 1));
    CHECK(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
    CHECK_EQ(errno, EINVAL);
    CHECK_ERRNO(munmap(memory + 1, PAGE), EINVAL);
    for (int i = 0; i < 500; i++) {
        char* other = mmap(NULL, PAGE * (size_t)(1 + i % 7), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(other != MAP_FAILED && other[0] == 0);
        other[0] = 1;
        if (i % 3) CHECK_EQ(munmap(other, PAGE * (size_t)(1 + i % 7)), 0);
    }
    return guest_passed();
}
