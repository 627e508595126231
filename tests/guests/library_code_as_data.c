// Code that was called just now is read, by the program and by the kernel, on both sides of a call.
#include <pthread.h>

#include "guest.h"
#include "libgprguest.h"

enum { ROUNDS = 12, WORDS = 4, THREAD_CALLS = 300 };

static long at_home(long value, void* unused) {
    (void)unused;
    return value + 1;
}

static void* call_for_long(void* unused) {
    (void)unused;
    long sum = 0;
    for (int i = 0; i < THREAD_CALLS; i++) sum += remote_add(i, 1);
    CHECK_EQ(sum, THREAD_CALLS * (THREAD_CALLS + 1L) / 2);
    return NULL;
}

// What is shown to be read is hidden again before long; only then can a call leave for it.
static void let_it_hide(void) { usleep(2000); }

static uint64_t sum_of(const void* code) {
    const volatile uint64_t* words = code;
    uint64_t sum = 0;
    for (int i = 0; i < WORDS; i++) sum += words[i];
    return sum;
}

static uint64_t sum_through_pipe(const int pipes[2], const void* code) {
    uint64_t copy[WORDS];
    CHECK_EQ(write(pipes[1], code, sizeof copy), sizeof copy);
    CHECK_EQ(read(pipes[0], copy, sizeof copy), sizeof copy);
    return sum_of(copy);
}

int main(void) {
    const void* remote = (const void*)(uintptr_t)remote_add;
    const void* home = (const void*)((uintptr_t)at_home & ~(uintptr_t)7);
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    uint64_t remote_sum_first = sum_of(remote), home_sum_first = sum_of(home);
    for (int i = 0; i < ROUNDS; i++) {
        let_it_hide();
        CHECK_EQ(remote_add(i, 1), i + 1);
        CHECK(sum_through_pipe(pipes, remote) == remote_sum_first);
        let_it_hide();
        CHECK_EQ(remote_add(i, 2), i + 2);
        CHECK(sum_of(remote) == remote_sum_first);
        let_it_hide();
        CHECK_EQ(remote_callback(at_home, NULL, 3), 1 + 2 + 3);
        CHECK(remote_sum(home, WORDS) == home_sum_first);
    }
    pthread_t caller;
    CHECK(pthread_create(&caller, NULL, call_for_long, NULL) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(sum_of(remote) == remote_sum_first);
        CHECK(sum_through_pipe(pipes, remote) == remote_sum_first);
    }
    CHECK(pthread_join(caller, NULL) == 0);
    return guest_passed();
}
