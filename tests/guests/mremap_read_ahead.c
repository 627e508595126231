// Memory is moved, replaced, discarded or cut just after another thread has begun to read it from
// its start, so that pages ahead of the reader are on the move.
#include <pthread.h>
#include <sys/mman.h>

#include "guest.h"

enum { PAGE = 4096, PAGES = 192, SIZE = PAGES * PAGE, ROUNDS = 60 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static char* memory;
static int turn;  // odd: the reader's

static uint64_t* word(int page) { return (uint64_t*)(memory + (size_t)page * PAGE + page * 8); }

static void wait_for(int parity) {
    while (turn % 2 != parity) CHECK_EQ(pthread_cond_wait(&changed, &lock), 0);
}

static void pass_on(void) {
    turn++;
    CHECK_EQ(pthread_cond_broadcast(&changed), 0);
}

static void* read_beginning(void* unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        CHECK_EQ(pthread_mutex_lock(&lock), 0);
        wait_for(1);
        for (int page = 0; page < 4 + round % 8; page++) CHECK_EQ(*word(page), round * 1000 + page);
        pass_on();
        CHECK_EQ(pthread_mutex_unlock(&lock), 0);
    }
    return NULL;
}

static void* map_at(void* place, int extra) {
    return mmap(place, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | extra, -1, 0);
}

static void expect(int round, int from, int to) {
    for (int page = from; page < to; page++)
        CHECK_EQ(*word(page), round < 0 ? 0 : round * 1000 + page);
}

static void fill(int round) {
    for (int page = 0; page < PAGES; page++) *word(page) = (uint64_t)(round * 1000 + page);
}

// Changes the memory, or its content; afterwards it has the round's content.
static void change(int round, char* const places[2]) {
    const int part = PAGES / 3;
    char* to = places[memory == places[0]];
    switch (round % 8) {
        case 1:
            CHECK_EQ(munmap(memory, SIZE), 0);
            CHECK(map_at(memory, MAP_FIXED_NOREPLACE) == memory);
            break;
        case 3: CHECK(map_at(memory, MAP_FIXED) == memory); break;
        case 5: CHECK_EQ(madvise(memory, SIZE, MADV_DONTNEED), 0); break;
        case 7:
            CHECK(mremap(memory, SIZE, part * PAGE, 0) == memory);
            CHECK(mremap(memory, part * PAGE, SIZE, 0) == memory);
            expect(round, 0, part);
            expect(-1, part, PAGES);
            fill(round);
            return;
        default:
            CHECK(mremap(memory, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
            memory = to;
            return;
    }
    expect(-1, 0, PAGES);
    fill(round);
}

int main(void) {
    char* area = mmap(NULL, 4 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(area != MAP_FAILED);
    char* const places[2] = {area, area + 2 * SIZE};
    memory = map_at(places[0], MAP_FIXED);
    CHECK(memory == places[0]);
    pthread_t reader;
    CHECK_EQ(pthread_create(&reader, NULL, read_beginning, NULL), 0);
    for (int round = 0; round < ROUNDS; round++) {
        CHECK_EQ(pthread_mutex_lock(&lock), 0);
        fill(round);
        pass_on();
        wait_for(0);
        change(round, places);
        expect(round, 0, PAGES);
        CHECK_EQ(pthread_mutex_unlock(&lock), 0);
    }
    CHECK_EQ(pthread_join(reader, NULL), 0);
    return guest_passed();
}
