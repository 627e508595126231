// mincore tells that pages are there while other threads use them, also where these pages are on
// their way from one host to another.
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "guest.h"

enum { PAGE = 4096, PAGES = 64, ROUNDS = 60 };

static char* memory;
static atomic_int stop;

static void* use(void* unused) {
    (void)unused;
    while (!atomic_load(&stop)) {
        for (int i = 0; i < PAGES; i++) memory[i * PAGE]++;
        CHECK_EQ(getppid() > 0, 1);  // a call on the way
    }
    return NULL;
}

int main(void) {
    memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    for (int i = 0; i < PAGES; i++) memory[i * PAGE] = 'x';
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, use, NULL), 0);
    int missing = 0;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned char state[PAGES] = {0};
        CHECK_EQ(mincore(memory, PAGES * PAGE, state), 0);
        for (int i = 0; i < PAGES; i++) missing += !(state[i] & 1);
        for (int i = 0; i < PAGES; i += 2) memory[i * PAGE]++;
    }
    atomic_store(&stop, 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    printf("missing: %d\n", missing);
    return guest_passed();
}
