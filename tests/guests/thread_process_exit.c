// exit_group ends sixteen threads that compute, sleep, read and wait for a mutex.
#include <pthread.h>

#include "guest.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static int fds[2];

static void* worker(void* argument) {
    char byte;
    pthread_barrier_wait(&barrier);
    switch ((int)(intptr_t)argument % 4) {
        case 0:
            for (volatile int i = 0;; i++) {
            }
        case 1: sleep(1000); break;
        case 2: read(fds[0], &byte, 1); break;
        default: pthread_mutex_lock(&lock);
    }
    return NULL;
}

int main(void) {
    CHECK_EQ(pipe(fds), 0);
    pthread_mutex_lock(&lock);
    pthread_barrier_init(&barrier, NULL, 17);
    pthread_t thread;
    for (int i = 0; i < 16; i++)
        CHECK_EQ(pthread_create(&thread, NULL, worker, (void*)(intptr_t)i), 0);
    pthread_barrier_wait(&barrier);
    usleep(30000);
    exit(guest_passed() == 0 ? 44 : 1);
}
