// A bounded queue with condition variables: 3 producers, 2 consumers; timed waits time out.
#include <pthread.h>
#include <time.h>

#include "guest.h"

enum { PRODUCERS = 3, CONSUMERS = 2, ITEMS = 10000, SLOTS = 16 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static int slots[SLOTS], used, taken;
static long sum;

static void* produce(void* unused) {
    for (int i = 1; i <= ITEMS; i++) {
        pthread_mutex_lock(&lock);
        while (used == SLOTS) pthread_cond_wait(&not_full, &lock);
        slots[used++] = i;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static void* consume(void* unused) {
    pthread_mutex_lock(&lock);
    for (;;) {
        while (used == 0 && taken < PRODUCERS * ITEMS) pthread_cond_wait(&not_empty, &lock);
        if (taken == PRODUCERS * ITEMS) break;
        sum += slots[--used];
        if (++taken == PRODUCERS * ITEMS) pthread_cond_broadcast(&not_empty);
        pthread_cond_signal(&not_full);
    }
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(void) {
    pthread_t threads[PRODUCERS + CONSUMERS];
    for (int i = 0; i < PRODUCERS + CONSUMERS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, i < PRODUCERS ? produce : consume, NULL), 0);
    for (int i = 0; i < PRODUCERS + CONSUMERS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    printf("taken %d sum %ld\n", taken, sum);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 20000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    pthread_mutex_lock(&lock);
    CHECK_EQ(pthread_cond_timedwait(&not_empty, &lock, &until), ETIMEDOUT);
    pthread_mutex_unlock(&lock);
    return guest_passed();
}
