// Mutexes with priority inheritance, fought for by threads: the kernel keeps who owns them.
#include <pthread.h>

#include "guest.h"

enum { THREADS = 4, TIMES = 200, PAUSE_EVERY = 20 };

static pthread_mutex_t mutex;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long counter;
static int arrived;

static void* work(void* argument) {
    for (int i = 0; i < TIMES; i++) {
        CHECK_EQ(pthread_mutex_lock(&mutex), 0);
        counter++;
        if (i % PAUSE_EVERY == 0) usleep(300);
        CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    }
    CHECK_EQ(pthread_mutex_lock(&mutex), 0);
    arrived++;
    CHECK_EQ(pthread_cond_broadcast(&changed), 0);
    while (arrived < THREADS) CHECK_EQ(pthread_cond_wait(&changed, &mutex), 0);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    return argument;
}

int main(void) {
    pthread_mutexattr_t attributes;
    CHECK_EQ(pthread_mutexattr_init(&attributes), 0);
    CHECK_EQ(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT), 0);
    CHECK_EQ(pthread_mutex_init(&mutex, &attributes), 0);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, work, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(counter, THREADS * TIMES);
    CHECK_EQ(pthread_mutex_trylock(&mutex), 0);
    CHECK_EQ(pthread_mutex_trylock(&mutex), EBUSY);
    CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
    return guest_passed();
}
