// Threads that go from node to node share a mutex, a condition variable and atomics, wherever they
// are. Arguments: the number of operations; how many milliseconds one may take (0: any).
#include <pthread.h>
#include <time.h>

#include "guest.h"
#include "libgprguest.h"

enum { THREADS = 4, CHUNK = 100, CHUNKS_A_TURN = 10 };
static struct remote_shared shared = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                                      .turn_changed = PTHREAD_COND_INITIALIZER,
                                      .players = THREADS};
static long chunks;

static long home_operations(struct remote_shared* shared, int self, long times, int take_turn) {
#include "operations.inc"
}

static void* worker(void* argument) {
    int self = (int)(intptr_t)argument;
    long slowest = 0;
    for (long i = 0; i < chunks; i++) {
        int away = (i + self) % 2;
        int take_turn = i % CHUNKS_A_TURN == 0;
        long took = away ? remote_operations(&shared, self, CHUNK, take_turn)
                         : home_operations(&shared, self, CHUNK, take_turn);
        if (took > slowest) slowest = took;
    }
    return (void*)(intptr_t)slowest;
}

int main(int argc, char** argv) {
    long operations = argc > 1 ? atol(argv[1]) : 16000;
    long limit_ms = argc > 2 ? atol(argv[2]) : 0;
    chunks = operations / 2 / THREADS / CHUNK;
    pthread_t threads[THREADS];
    long slowest = 0;
    for (intptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, worker, (void*)i);
    for (int i = 0; i < THREADS; i++) {
        void* result = NULL;
        CHECK_EQ(pthread_join(threads[i], &result), 0);
        if ((intptr_t)result > slowest) slowest = (intptr_t)result;
    }
    CHECK_EQ(shared.locked, chunks * CHUNK * THREADS);
    CHECK_EQ(shared.atomic, shared.locked);
    CHECK_EQ(shared.turns, (chunks + CHUNKS_A_TURN - 1) / CHUNKS_A_TURN * THREADS);
    printf("%ld operations\n", shared.locked + shared.atomic);
    if (limit_ms > 0) {
        printf("the slowest took %ld us\n", slowest / 1000);
        CHECK(slowest <= limit_ms * 1000000);
    }
    return guest_passed();
}
