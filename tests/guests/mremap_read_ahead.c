// Memory moves (mremap, or away and back by munmap and mmap at the same place) just after another
// thread has begun to read it from its start, so that pages ahead of the reader are on the move.
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

static void move(int round, char* const places[2]) {
    if (round % 4 == 3) {
        CHECK_EQ(munmap(memory, SIZE), 0);
        CHECK(map_at(memory, MAP_FIXED_NOREPLACE) == memory);
        for (int page = 0; page < PAGES; page++) CHECK_EQ(*word(page), 0);
        for (int page = 0; page < PAGES; page++) *word(page) = (uint64_t)(round * 1000 + page);
        return;
    }
    char* to = places[memory == places[0]];
    const int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
    CHECK(mremap(memory, SIZE, SIZE, flags, to) == to);
    memory = to;
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
        for (int page = 0; page < PAGES; page++) *word(page) = (uint64_t)(round * 1000 + page);
        pass_on();
        wait_for(0);
        move(round, places);
        for (int page = 0; page < PAGES; page++) CHECK_EQ(*word(page), round * 1000 + page);
        CHECK_EQ(pthread_mutex_unlock(&lock), 0);
    }
    CHECK_EQ(pthread_join(reader, NULL), 0);
    return guest_passed();
}
