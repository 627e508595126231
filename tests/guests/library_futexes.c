// Two threads hand a word to and fro: both here, and one inside the library, where all the time
// another one waits for something else. The arguments are how often they do either. At the end many
// wait at one word and are moved to another.
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "guest.h"
#include "libgprguest.h"

enum { WAITERS = 4 };
static _Alignas(4096) uint32_t words[4096];
static uint32_t* const turn = &words[0];
static uint32_t* const gate = &words[1024];
static uint32_t* const second_gate = &words[2048];
static uint32_t* const idle = &words[3072];
static long times;
static uint32_t bitset;

static long futex(uint32_t* word, int operation, uint32_t value, unsigned long more,
                  uint32_t* other, uint32_t bits) {
    return syscall(SYS_futex, word, operation, value, more, other, bits);
}

static void hand_over(uint32_t* word, uint32_t value) {
    __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
    if (bitset) {
        futex(word, FUTEX_WAKE_BITSET_PRIVATE, 1, 0, NULL, bitset);
    } else {
        futex(word, FUTEX_WAKE_PRIVATE, 1, 0, NULL, 0);
    }
}

static void play(void) {
    for (long i = 0; i < times; i++) {
        hand_over(turn, 1);
        while (__atomic_load_n(turn, __ATOMIC_SEQ_CST) == 1) {
            futex(turn, FUTEX_WAIT_PRIVATE, 1, 0, NULL, 0);
        }
    }
}

static void* answer_here(void* unused) {
    for (long i = 0; i < times; i++) {
        while (__atomic_load_n(turn, __ATOMIC_SEQ_CST) == 0) {
            futex(turn, FUTEX_WAIT_PRIVATE, 0, 0, NULL, 0);
        }
        hand_over(turn, 0);
    }
    return unused;
}

static void* answer_there(void* unused) {
    remote_turns(turn, times, bitset);
    return unused;
}

static void* sit_there(void* unused) {
    remote_turns(idle, 1, 0);
    return unused;
}

static void against(void* (*answer)(void*), long how_often, uint32_t bits) {
    pthread_t other;
    times = how_often;
    bitset = bits;
    CHECK_EQ(pthread_create(&other, NULL, answer, NULL), 0);
    play();
    CHECK_EQ(pthread_join(other, NULL), 0);
    printf("%ld turns, bits %x\n", how_often, bits);
}

// Through one gate by waiting, through the other by being moved there.
static void* pass(void* self) {
    if ((intptr_t)self % 2) remote_count(1000);  // has been at the acceptor
    while (__atomic_load_n(gate, __ATOMIC_SEQ_CST) == 0) {
        futex(gate, FUTEX_WAIT_PRIVATE, 0, 0, NULL, 0);
    }
    while (__atomic_load_n(second_gate, __ATOMIC_SEQ_CST) == 0) {
        futex(second_gate, FUTEX_WAIT_PRIVATE, 0, 0, NULL, 0);
    }
    return NULL;
}

static void requeue(void) {
    pthread_t threads[WAITERS];
    for (intptr_t i = 0; i < WAITERS; i++) pthread_create(&threads[i], NULL, pass, (void*)i);
    usleep(20000);
    __atomic_store_n(gate, 1, __ATOMIC_SEQ_CST);
    futex(gate, FUTEX_REQUEUE_PRIVATE, 1, WAITERS, second_gate, 0);
    usleep(20000);
    __atomic_store_n(second_gate, 1, __ATOMIC_SEQ_CST);
    futex(second_gate, FUTEX_WAKE_PRIVATE, WAITERS, 0, NULL, 0);
    for (int i = 0; i < WAITERS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    printf("%d passed\n", WAITERS);
}

int main(int argc, char** argv) {
    long here = argc > 1 ? atol(argv[1]) : 1000, there = argc > 2 ? atol(argv[2]) : 50;
    pthread_t sitter;
    CHECK_EQ(pthread_create(&sitter, NULL, sit_there, NULL), 0);
    against(answer_there, there, 0);
    against(answer_here, here, 0);
    against(answer_there, there, 0x10);
    hand_over(idle, 1);
    CHECK_EQ(pthread_join(sitter, NULL), 0);
    requeue();
    return guest_passed();
}
