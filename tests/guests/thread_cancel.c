// pthread_cancel of a thread that reads, sleeps or computes; cleanup handlers run.
#include <pthread.h>
#include <time.h>

#include "guest.h"

static int fds[2], cleaned;
static volatile int pushed, computing;

static void cleanup(void* value) { cleaned += (int)(intptr_t)value; }

static void* reader(void* unused) {
    char byte;
    pthread_cleanup_push(cleanup, (void*)1);
    pushed = 1;
    read(fds[0], &byte, 1);
    pthread_cleanup_pop(0);
    return unused;
}

static void* sleeper(void* unused) {
    pthread_cleanup_push(cleanup, (void*)10);
    pushed = 1;
    struct timespec time = {1000, 0};
    nanosleep(&time, NULL);
    pthread_cleanup_pop(0);
    return unused;
}

static void* computer(void* unused) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    pthread_cleanup_push(cleanup, (void*)100);
    for (;;) computing = 1;
    pthread_cleanup_pop(0);
    return unused;
}

static void* immune(void* unused) {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    computing = 2;
    while (computing != 3) usleep(1000);
    return (void*)7;
}

int main(void) {
    CHECK_EQ(pipe(fds), 0);
    void* (*functions[])(void*) = {reader, sleeper, computer};
    pthread_t thread;
    void* value;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pthread_create(&thread, NULL, functions[i], NULL), 0);
        while (!(i == 2 ? computing : pushed)) usleep(1000);
        usleep(10000);  // now it most likely waits inside its call
        pushed = 0;
        CHECK_EQ(pthread_cancel(thread), 0);
        CHECK_EQ(pthread_join(thread, &value), 0);
        CHECK(value == PTHREAD_CANCELED);
    }
    CHECK_EQ(pthread_create(&thread, NULL, immune, NULL), 0);
    while (computing != 2) usleep(1000);
    CHECK_EQ(pthread_cancel(thread), 0);
    computing = 3;
    CHECK_EQ(pthread_join(thread, &value), 0);
    CHECK_EQ((intptr_t)value, 7);
    printf("cleaned %d\n", cleaned);
    return guest_passed();
}
