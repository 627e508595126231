// Memory is mapped, written and unmapped again and again, whole and in parts, beside other mappings
// that stay. Argument: rounds.
#include <sys/mman.h>

#include "guest.h"

#define PAGE 4096
#define BESIDE 400

static unsigned char* map(size_t pages, int prot) {
    void* memory = mmap(NULL, pages * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

int main(int argc, char** argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 300;
    unsigned char* beside[BESIDE];
    for (int i = 0; i < BESIDE; i++) {  // of two kinds, so that none become one
        beside[i] = map(3, i % 2 ? PROT_READ : PROT_READ | PROT_WRITE);
        if (i % 2 == 0) beside[i][PAGE] = (unsigned char)i;
    }
    for (int round = 0; round < rounds; round++) {
        unsigned char* memory = map(5, PROT_READ | PROT_WRITE);
        for (int page = 0; page < 5; page++) CHECK_EQ(memory[page * PAGE], 0);
        memset(memory, 1 + round % 200, 5 * PAGE);
        CHECK_EQ(munmap(memory + 2 * PAGE, PAGE), 0);
        CHECK_EQ(memory[PAGE], 1 + round % 200);
        CHECK_EQ(memory[4 * PAGE], 1 + round % 200);
        unsigned char* again = mmap(memory + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        CHECK(again == memory + 2 * PAGE);
        CHECK_EQ(again[0], 0);
        CHECK_EQ(memory[3 * PAGE], 1 + round % 200);
        CHECK_EQ(munmap(memory, 5 * PAGE), 0);
    }
    for (int i = 0; i < BESIDE; i++) {
        CHECK_EQ(beside[i][PAGE], i % 2 ? 0 : (unsigned char)i);
        CHECK_EQ(munmap(beside[i] + PAGE, PAGE), 0);
    }
    return guest_passed();
}
