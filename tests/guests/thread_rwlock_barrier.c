// Read-write locks keep pairs consistent; barriers keep rounds in step; spin locks and once.
#include <pthread.h>

#include "guest.h"

enum { THREADS = 6, ROUNDS = 200 };
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int left, right, initialised, spun, serials;
static int round_of[THREADS];

static void initialise(void) { initialised++; }

static void* worker(void* argument) {
    int self = (int)(intptr_t)argument;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_once(&once, initialise);
        if (self % 3 == 0) {
            CHECK_EQ(pthread_rwlock_wrlock(&rwlock), 0);
            left++;
            right++;
        } else {
            CHECK_EQ(pthread_rwlock_rdlock(&rwlock), 0);
            CHECK_EQ(left, right);
        }
        CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
        pthread_spin_lock(&spin);
        spun++;
        pthread_spin_unlock(&spin);
        round_of[self] = i;
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) serials++;
        for (int other = 0; other < THREADS; other++) CHECK_EQ(round_of[other], i);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (intptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, worker, (void*)i);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    printf("writes %d once %d spun %d serials %d\n", left, initialised, spun, serials);
    return guest_passed();
}
