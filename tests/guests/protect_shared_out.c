// One thread makes memory read-only and writable again while others look at it: what is in it
// stays.
#include <pthread.h>
#include <sys/mman.h>

#include "guest.h"

enum { PAGE = 4096, PAGES = 32, ROUNDS = 300, READERS = 2 };
static uint64_t* memory;
static volatile int stop;

static uint64_t* word(int page) { return memory + (size_t)page * PAGE / sizeof *memory; }

static void* look(void* unused) {
    (void)unused;
    while (!stop) {
        for (int i = 0; i < PAGES; i++) {
            CHECK_EQ(word(i)[7], 0x1111111100000000u + (unsigned)i);
            CHECK(word(i)[0] <= ROUNDS);
        }
        CHECK(getpid() > 0);
    }
    return NULL;
}

// With a key of its own, which lets everybody do everything, or without one.
static void protect(int protection, int key) {
    if (key > 0) {
        CHECK_EQ(pkey_mprotect(memory, PAGES * PAGE, protection, key), 0);
    } else {
        CHECK_EQ(mprotect(memory, PAGES * PAGE, protection), 0);
    }
}

int main(void) {
    pthread_t readers[READERS];
    memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    for (int i = 0; i < PAGES; i++) word(i)[7] = 0x1111111100000000u + (unsigned)i;
    int key = pkey_alloc(0, 0);  // not every processor has them
    for (int i = 0; i < READERS; i++) CHECK_EQ(pthread_create(&readers[i], NULL, look, NULL), 0);
    for (unsigned round = 1; round <= ROUNDS; round++) {
        int with = round % 3 == 0 ? key : 0;
        protect(PROT_READ, with);
        for (int i = 0; i < PAGES; i++) CHECK_EQ(word(i)[0], round - 1);
        protect(PROT_READ | PROT_WRITE, with);
        for (int i = 0; i < PAGES; i++) word(i)[0] = round;
    }
    stop = 1;
    for (int i = 0; i < READERS; i++) CHECK_EQ(pthread_join(readers[i], NULL), 0);
    return guest_passed();
}
