// Normal, recursive and error-checking mutexes under four threads: 400,000 increments.
#include <pthread.h>

#include "guest.h"

enum { THREADS = 4, ROUNDS = 100000 };
static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, recursive, checking;
static long counter;

static void* worker(void* unused) {
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(pthread_mutex_lock(&plain), 0);
        counter++;
        CHECK_EQ(pthread_mutex_unlock(&plain), 0);
    }
    CHECK_EQ(pthread_mutex_unlock(&checking), EPERM);
    return unused;
}

int main(void) {
    pthread_mutexattr_t attribute;
    pthread_mutexattr_init(&attribute);
    pthread_mutexattr_settype(&attribute, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &attribute);
    pthread_mutexattr_settype(&attribute, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&checking, &attribute);
    for (int i = 0; i < 5; i++) CHECK_EQ(pthread_mutex_lock(&recursive), 0);
    for (int i = 0; i < 5; i++) CHECK_EQ(pthread_mutex_unlock(&recursive), 0);
    CHECK_EQ(pthread_mutex_unlock(&recursive), EPERM);
    CHECK_EQ(pthread_mutex_lock(&checking), 0);
    CHECK_EQ(pthread_mutex_lock(&checking), EDEADLK);
    CHECK_EQ(pthread_mutex_trylock(&checking), EBUSY);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_create(&threads[i], NULL, worker, NULL), 0);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    printf("%ld\n", counter);
    struct timespec past = {1, 0};
    CHECK_EQ(pthread_mutex_lock(&plain), 0);
    CHECK_EQ(pthread_mutex_timedlock(&plain, &past), ETIMEDOUT);
    return guest_passed();
}
