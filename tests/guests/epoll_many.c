// One epoll with 300 pipes that other threads write to.
#include <pthread.h>
#include <sys/epoll.h>

#include "guest.h"

enum { PIPES = 300, THREADS = 3, ROUNDS = 20 };
static int pipes[PIPES][2];

static void* writer(void* argument) {
    int first = (int)(intptr_t)argument;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = first; i < PIPES; i += THREADS) CHECK_EQ(write(pipes[i][1], "x", 1), 1);
    return NULL;
}

int main(void) {
    int epoll = epoll_create1(0);
    for (int i = 0; i < PIPES; i++) {
        CHECK_EQ(pipe(pipes[i]), 0);
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[i][0], &event), 0);
    }
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, writer, (void*)(intptr_t)i), 0);
    int counts[PIPES] = {0}, total = 0;
    while (total < PIPES * ROUNDS) {
        struct epoll_event events[64];
        int ready = epoll_wait(epoll, events, 64, 10000);
        CHECK(ready > 0);
        for (int i = 0; i < ready; i++) {
            char bytes[64];
            ssize_t got = read(pipes[events[i].data.u32][0], bytes, sizeof bytes);
            CHECK(got > 0);
            counts[events[i].data.u32] += (int)got;
            total += (int)got;
        }
    }
    for (int i = 0; i < PIPES; i++) CHECK_EQ(counts[i], ROUNDS);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    return guest_passed();
}
