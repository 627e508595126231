// Threads change what one signal does at the same time: each finds what one of them has set, and
// what the last one has set is what happens.
#include <pthread.h>
#include <signal.h>

#include "guest.h"

enum { THREADS = 3, CHANGES = 60, ROUNDS = 6 };

static volatile int first, second, third;

static void on_first(int number) {
    (void)number;
    first++;
}
static void on_second(int number) {
    (void)number;
    second++;
}
static void on_third(int number) {
    (void)number;
    third++;
}
static void (*const handlers[])(int) = {on_first, on_second, on_third, SIG_IGN};

static void* change(void* argument) {
    int which = (int)(intptr_t)argument;
    for (int i = 0; i < CHANGES; i++) {
        struct sigaction action = {.sa_handler = handlers[(which + i) % 4]}, before;
        CHECK_EQ(sigaction(SIGUSR1, &action, &before), 0);
        int known = 0;
        for (int h = 0; h < 4; h++) known += before.sa_handler == handlers[h];
        CHECK_EQ(known, 1);
    }
    return NULL;
}

static void* raise_once(void* unused) {
    first = second = third = 0;
    struct sigaction now;
    CHECK_EQ(sigaction(SIGUSR1, NULL, &now), 0);
    raise(SIGUSR1);
    CHECK_EQ(first, now.sa_handler == on_first);
    CHECK_EQ(second, now.sa_handler == on_second);
    CHECK_EQ(third, now.sa_handler == on_third);
    return unused;
}

int main(void) {
    struct sigaction action = {.sa_handler = on_first};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        for (intptr_t i = 0; i < THREADS; i++) {
            CHECK_EQ(pthread_create(&threads[i], NULL, change, (void*)i), 0);
        }
        for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
        for (int i = 0; i < 4; i++) {
            raise_once(NULL);
            CHECK_EQ(pthread_create(&threads[0], NULL, raise_once, NULL), 0);
            CHECK_EQ(pthread_join(threads[0], NULL), 0);
        }
    }
    return guest_passed();
}
