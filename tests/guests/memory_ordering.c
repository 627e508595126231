// Litmus tests between two threads: message passing and store buffering with fences.
#include <pthread.h>
#include <stdatomic.h>

#include "guest.h"

enum { ROUNDS = 300 };
static struct { _Alignas(4096) atomic_int value; } x, y, turn_a, turn_b;
static int seen_x, seen_y;

static void meet(atomic_int* mine, atomic_int* other, int round) {
    atomic_store(mine, round);
    while (atomic_load(other) < round) {
    }
}

static void* second(void* unused) {
    for (int round = 1; round <= ROUNDS; round++) {
        meet(&turn_b.value, &turn_a.value, 3 * round);
        atomic_store_explicit(&y.value, round, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst);
        seen_x = atomic_load_explicit(&x.value, memory_order_relaxed);
        meet(&turn_b.value, &turn_a.value, 3 * round + 1);
        meet(&turn_b.value, &turn_a.value, 3 * round + 2);
    }
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, second, NULL);
    int both_old = 0;
    for (int round = 1; round <= ROUNDS; round++) {
        meet(&turn_a.value, &turn_b.value, 3 * round);
        atomic_store_explicit(&x.value, round, memory_order_relaxed);
        atomic_thread_fence(memory_order_seq_cst);
        seen_y = atomic_load_explicit(&y.value, memory_order_relaxed);
        meet(&turn_a.value, &turn_b.value, 3 * round + 1);
        both_old += seen_x < round && seen_y < round;
        CHECK(seen_x >= round - 1 && seen_y >= round - 1);
        meet(&turn_a.value, &turn_b.value, 3 * round + 2);
    }
    pthread_join(thread, NULL);
    CHECK_EQ(both_old, 0);
    return guest_passed();
}
