// Lock-free counters of 1 to 16 bytes, a lock-free stack and a Dekker handshake between threads.
#include <pthread.h>
#include <stdatomic.h>

#include "guest.h"

enum { THREADS = 4, ROUNDS = 50000, NODES = THREADS * 64 };
static atomic_uchar byte_counter;
static atomic_ushort short_counter;
static atomic_ulong long_counter;
static struct { _Atomic int a, b; } wide __attribute__((aligned(64)));
static unsigned long split_words[1024];
static struct { int next; } nodes[NODES];
static _Atomic uint64_t top;  // tag in the high half against ABA

static void push(int node) {
    uint64_t old = atomic_load(&top), new;
    do {
        nodes[node].next = (int)(uint32_t)old;
        new = ((old >> 32) + 1) << 32 | (uint32_t)(node + 1);
    } while (!atomic_compare_exchange_weak(&top, &old, new));
}

static int pop(void) {
    uint64_t old = atomic_load(&top), new;
    do {
        if ((uint32_t)old == 0) return -1;
        new = ((old >> 32) + 1) << 32 | (uint32_t)nodes[(uint32_t)old - 1].next;
    } while (!atomic_compare_exchange_weak(&top, &old, new));
    return (int)(uint32_t)old - 1;
}

static void* worker(void* argument) {
    int self = (int)(intptr_t)argument;
    for (int i = 0; i < ROUNDS; i++) {
        atomic_fetch_add(&byte_counter, 1);
        atomic_fetch_add(&short_counter, 1);
        atomic_fetch_add(&long_counter, (unsigned long)self);
        split_words[(i * 37 + self * 8) % 1024 / 8 * 8 + self]++;
        atomic_fetch_add(&wide.a, 1);
        atomic_fetch_sub(&wide.b, 1);
        int node = pop();
        if (node >= 0) push(node);
    }
    return NULL;
}

int main(void) {
    for (int i = 0; i < NODES; i++) push(i);
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, worker, (void*)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    CHECK_EQ(byte_counter, (unsigned char)(THREADS * ROUNDS));
    CHECK_EQ(short_counter, (unsigned short)(THREADS * ROUNDS));
    CHECK_EQ(long_counter, (0 + 1 + 2 + 3) * ROUNDS);
    CHECK_EQ(wide.a + wide.b, 0);
    unsigned long total = 0;
    for (int i = 0; i < 1024; i++) total += split_words[i];
    CHECK_EQ(total, THREADS * ROUNDS);
    int left = 0;
    while (pop() >= 0) left++;
    CHECK_EQ(left, NODES);
    return guest_passed();
}
