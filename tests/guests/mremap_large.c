// Memory of many pages that is populated, moved and made shorter: what each page costs must not
// depend on how many there are.
#include <sys/mman.h>

#include "guest.h"

enum { PAGE = 4096 };

static void fill(unsigned char* at, size_t size, int round) {
    for (size_t i = 0; i < size; i += PAGE) at[i] = (unsigned char)(i / PAGE * 7 + round);
}

static void look(const unsigned char* at, size_t size, int round) {
    for (size_t i = 0; i < size; i += PAGE) {
        CHECK_EQ(at[i], (unsigned char)(i / PAGE * 7 + round));
    }
}

int main(void) {
    for (int round = 0; round < 2; round++) {
        size_t size = 512ul << 20;
        unsigned char* at =
            mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(at != MAP_FAILED);
        CHECK_EQ(madvise(at, size, MADV_POPULATE_READ), 0);
        fill(at, size, round);
        while (size > (16ul << 20)) {
            unsigned char* moved = mremap(at, size, size / 2, MREMAP_MAYMOVE);
            CHECK(moved != MAP_FAILED);
            at = moved;
            size /= 2;
            look(at, size, round);
            CHECK_EQ(madvise(at, size, MADV_POPULATE_WRITE), 0);
        }
        CHECK_EQ(munmap(at, size), 0);
    }
    return guest_passed();
}
