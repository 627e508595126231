// brk grows and shrinks the heap; new heap is zero; malloc of all sizes keeps its content.
#include "guest.h"

enum { BLOCKS = 2000 };

int main(void) {
    char* start = sbrk(0);
    CHECK(sbrk(1 << 20) == start);
    CHECK(sbrk(0) == start + (1 << 20));
    for (int i = 0; i < 1 << 20; i += 4096) CHECK(start[i] == 0);
    memset(start, 'h', 1 << 20);
    CHECK_EQ(brk(start + 100000), 0);
    CHECK_EQ(start[99999], 'h');
    CHECK_EQ(brk(start + (1 << 20)), 0);
    CHECK_EQ(start[200000], 0);
    CHECK_EQ(brk(start), 0);
    static char* blocks[BLOCKS];
    uint64_t random = 7;
    for (int round = 0; round < 20000; round++) {
        int i = (int)(guest_random(&random) % BLOCKS);
        size_t size = 8 + (size_t)i * (size_t)i % 60000;
        if (blocks[i]) {
            CHECK(guest_is_filled(blocks[i], 7, (uint64_t)i));
            CHECK(blocks[i][size - 1] == (char)i);
            free(blocks[i]);
            blocks[i] = NULL;
        } else {
            blocks[i] = malloc(size);
            guest_fill(blocks[i], 7, (uint64_t)i);
            blocks[i][size - 1] = (char)i;
        }
    }
    return guest_passed();
}
