// Thread-local variables (initialised and zero), pthread keys and their destructors, errno.
#include <pthread.h>

#include "guest.h"

enum { THREADS = 16 };
static __thread int initialised = 42;
static __thread char zeroed[5000];
static pthread_key_t key;
static int destroyed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void destroy(void* value) {
    pthread_mutex_lock(&lock);
    destroyed += (int)(intptr_t)value;
    pthread_mutex_unlock(&lock);
}

static void* worker(void* argument) {
    int self = (int)(intptr_t)argument;
    CHECK_EQ(initialised, 42);
    CHECK_EQ(zeroed[4999], 0);
    CHECK(pthread_getspecific(key) == NULL);
    CHECK_EQ(pthread_setspecific(key, (void*)(intptr_t)self), 0);
    for (int i = 0; i < 1000; i++) {
        initialised = self * 1000 + i;
        memset(zeroed, self, sizeof zeroed);
        if (i % 100 == 0) CHECK(close(-1) == -1 && errno == EBADF);
        CHECK_EQ(initialised, self * 1000 + i);
        CHECK_EQ(zeroed[i], (char)self);
    }
    CHECK_EQ((intptr_t)pthread_getspecific(key), self);
    return &initialised;
}

int main(void) {
    pthread_t threads[THREADS];
    pthread_key_create(&key, destroy);
    errno = ENOSPC;
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, worker, (void*)(intptr_t)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(errno, ENOSPC);
    CHECK_EQ(initialised, 42);
    printf("destroyed %d\n", destroyed);
    return guest_passed();
}
