// futex: WAIT/WAKE counts, EAGAIN, time-outs, bitsets, REQUEUE, WAKE_OP, PI lock and unlock.
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>

#include "guest.h"

enum { WAITERS = 5 };
static int word, other, pi_word, ready, woken;

static long futex(int* at, int operation, int value, void* timeout, int* at2, int value3) {
    return syscall(SYS_futex, at, operation | FUTEX_PRIVATE_FLAG, value, timeout, at2, value3);
}

static void* waiter(void* argument) {
    __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
    CHECK_EQ(futex(&word, FUTEX_WAIT_BITSET, 0, NULL, NULL, (int)(intptr_t)argument), 0);
    __atomic_add_fetch(&woken, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void* pi_locker(void* unused) {
    CHECK_EQ(futex(&pi_word, FUTEX_LOCK_PI, 0, NULL, NULL, 0), 0);
    CHECK_EQ(pi_word & FUTEX_TID_MASK, gettid());
    CHECK_EQ(futex(&pi_word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0), 0);
    return unused;
}

static void wait_for(int* value, int wanted) {
    while (__atomic_load_n(value, __ATOMIC_SEQ_CST) != wanted) usleep(500);
}

int main(void) {
    struct timespec soon = {0, 2000000};
    CHECK_ERRNO(futex(&word, FUTEX_WAIT, 1, NULL, NULL, 0), EAGAIN);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT, 0, &soon, NULL, 0), ETIMEDOUT);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT_BITSET, 0, NULL, NULL, 0), EINVAL);
    CHECK_EQ(futex(&word, FUTEX_WAKE, 1, NULL, NULL, 0), 0);
    pthread_t threads[WAITERS];
    for (int i = 0; i < WAITERS; i++)
        pthread_create(&threads[i], NULL, waiter, (void*)(intptr_t)(1 << i));
    wait_for(&ready, WAITERS);
    while (futex(&word, FUTEX_WAKE_BITSET, 9, NULL, NULL, 1 << 2) != 1) usleep(500);
    wait_for(&woken, 1);
    int moved = 0;  // wake none, move all: retried until all four wait
    while (moved < 4)
        moved += (int)futex(&word, FUTEX_CMP_REQUEUE, 0, (void*)4, &other, 0), usleep(500);
    CHECK_EQ(moved, 4);
    CHECK_EQ(futex(&word, FUTEX_WAKE, 99, NULL, NULL, 0), 0);
    // WAKE_OP: other = 7, wakes one waiter of `other` because its old value was 0.
    CHECK_EQ(futex(&word, FUTEX_WAKE_OP, 1, (void*)1, &other,
                   FUTEX_OP(FUTEX_OP_SET, 7, FUTEX_OP_CMP_EQ, 0)),
             1);
    CHECK_EQ(other, 7);
    CHECK_EQ(futex(&other, FUTEX_WAKE, 99, NULL, NULL, 0), 3);
    for (int i = 0; i < WAITERS; i++) pthread_join(threads[i], NULL);
    CHECK_EQ(woken, WAITERS);
    CHECK_EQ(futex(&pi_word, FUTEX_LOCK_PI, 0, NULL, NULL, 0), 0);
    CHECK_EQ(pi_word, gettid());
    CHECK_ERRNO(futex(&pi_word, FUTEX_LOCK_PI, 0, NULL, NULL, 0), EDEADLK);
    pthread_create(&threads[0], NULL, pi_locker, NULL);
    while (!(__atomic_load_n(&pi_word, __ATOMIC_SEQ_CST) & (int)FUTEX_WAITERS)) usleep(500);
    CHECK_EQ(futex(&pi_word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0), 0);
    pthread_join(threads[0], NULL);
    CHECK_EQ(pi_word, 0);
    return guest_passed();
}
