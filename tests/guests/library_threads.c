// Threads share a mutex, a condition variable and atomics; half of them work inside the library.
// The argument is the number of operations.
#include <pthread.h>

#include "guest.h"
#include "libgprguest.h"

enum { THREADS = 4 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static long locked, atomic, turns, each;
static int turn;

static void take_turn(int self) {
    pthread_mutex_lock(&mutex);
    while (turn != self) pthread_cond_wait(&turn_changed, &mutex);
    turn = (turn + 1) % THREADS;
    turns++;
    pthread_cond_broadcast(&turn_changed);
    pthread_mutex_unlock(&mutex);
}

static void* worker(void* argument) {
    int self = (int)(intptr_t)argument;
    CHECK_EQ(*remote_thread_local(), 7);
    *remote_thread_local() = self;
    for (long i = 0; i < each; i += 100) {
        if (self % 2) {
            remote_locked_add(&mutex, &locked, 100);
            remote_atomic_add(&atomic, 100);
        } else {
            for (int j = 0; j < 100; j++) {
                pthread_mutex_lock(&mutex);
                locked++;
                pthread_mutex_unlock(&mutex);
                __atomic_fetch_add(&atomic, 1, __ATOMIC_SEQ_CST);
            }
        }
        if (i % 1000 == 0) take_turn(self);
    }
    CHECK_EQ(*remote_thread_local(), self);
    return NULL;
}

int main(int argc, char** argv) {
    long operations = argc > 1 ? atol(argv[1]) : 8000;
    each = operations / 2 / THREADS;
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, worker, (void*)i);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(locked, (each + 99) / 100 * 100 * THREADS);
    CHECK_EQ(atomic, locked);
    CHECK_EQ(turns, (each + 999) / 1000 * THREADS);
    printf("%ld operations\n", locked + atomic);
    return guest_passed();
}
