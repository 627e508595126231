// Threads write neighbouring words of the same pages for a while; every word ends right.
#include <pthread.h>

#include "guest.h"

enum { THREADS = 4, WORDS = 2048, ROUNDS = 200 };
static volatile long words[WORDS] __attribute__((aligned(4096)));
static volatile long progress[THREADS];

static void* worker(void* argument) {
    int self = (int)(intptr_t)argument;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = self; i < WORDS; i += THREADS) words[i] += i;
        progress[self] = round;
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, worker, (void*)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < WORDS; i++) CHECK_EQ(words[i], (long)i * ROUNDS);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(progress[i], ROUNDS - 1);
    return guest_passed();
}
