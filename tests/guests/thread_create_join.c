// 64 threads at once, return values, thousands of short threads one after another, detached ones.
#include <pthread.h>
#include <semaphore.h>

#include "guest.h"

enum { THREADS = 64, SHORT = 1000, DETACHED = 20 };
static pthread_barrier_t barrier;
static sem_t done;

static void* together(void* argument) {
    int result = pthread_barrier_wait(&barrier);
    CHECK(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
    return (void*)((intptr_t)argument * 3);
}
static void* brief(void* argument) { return argument; }
static void* detached(void* argument) {
    CHECK_EQ(pthread_detach(pthread_self()), 0);
    sem_post(&done);
    pthread_exit(argument);
}

int main(void) {
    pthread_t threads[THREADS];
    void* value;
    CHECK_EQ(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, together, (void*)i), 0);
    for (intptr_t i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_join(threads[i], &value), 0);
        CHECK_EQ((intptr_t)value, i * 3);
    }
    for (intptr_t i = 0; i < SHORT; i++) {
        CHECK_EQ(pthread_create(&threads[0], NULL, brief, (void*)i), 0);
        CHECK_EQ(pthread_join(threads[0], &value), 0);
        CHECK_EQ((intptr_t)value, i);
    }
    CHECK_EQ(sem_init(&done, 0, 0), 0);
    for (int i = 0; i < DETACHED; i++)
        CHECK_EQ(pthread_create(&threads[0], NULL, detached, NULL), 0);
    for (int i = 0; i < DETACHED; i++) CHECK_EQ(sem_wait(&done), 0);
    return guest_passed();
}
