// FUTEX_CMP_REQUEUE moves waiters to another word, where they go on waiting: none is woken, lost or
// counted twice, wherever it waits.
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "guest.h"

enum { WAITERS = 6, ROUNDS = 4, SETTLE_MS = 150 };

static uint32_t words[2];
static int about_to_wait, back;

static long futex(uint32_t* word, int operation, uint32_t value, long second, uint32_t* other,
                  uint32_t expected) {
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, second, other, expected);
}

static void* wait_for_end(void* unused) {
    __atomic_fetch_add(&about_to_wait, 1, __ATOMIC_SEQ_CST);
    CHECK_EQ(futex(words, FUTEX_WAIT, 0, 0, NULL, 0), 0);
    __atomic_fetch_add(&back, 1, __ATOMIC_SEQ_CST);
    return unused;
}

static int came_back(void) { return __atomic_load_n(&back, __ATOMIC_SEQ_CST); }
static void until(const int* count, int wanted) {
    while (__atomic_load_n(count, __ATOMIC_SEQ_CST) < wanted) usleep(1000);
}

// round: how many are woken at once.
static void move_waiters(int round) {
    pthread_t threads[WAITERS];
    about_to_wait = back = 0;
    for (int i = 0; i < WAITERS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, wait_for_end, NULL), 0);
    until(&about_to_wait, WAITERS);
    usleep(SETTLE_MS * 1000);
    CHECK_ERRNO(futex(words, FUTEX_CMP_REQUEUE, (uint32_t)round, 100, words + 1, 1), EAGAIN);
    CHECK_EQ(came_back(), 0);
    CHECK_EQ(futex(words, FUTEX_CMP_REQUEUE, (uint32_t)round, 2, words + 1, 0), round + 2);
    until(&back, round);
    usleep(SETTLE_MS * 1000);
    CHECK_EQ(came_back(), round);
    // The others still wait for the first word, and are moved now.
    CHECK_EQ(futex(words, FUTEX_REQUEUE, 0, 100, words + 1, 0), WAITERS - round - 2);
    usleep(SETTLE_MS * 1000);
    CHECK_EQ(came_back(), round);
    CHECK_EQ(futex(words, FUTEX_REQUEUE, 0, 100, words + 1, 0), 0);
    CHECK(futex(words + 1, FUTEX_WAKE, WAITERS, 0, NULL, 0) >= 0);
    for (int i = 0; i < WAITERS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(came_back(), WAITERS);
}

int main(void) {
    CHECK_ERRNO(futex(words, FUTEX_CMP_REQUEUE, (uint32_t)-1, 1, words + 1, 0), EINVAL);
    for (int round = 0; round < ROUNDS; round++) move_waiters(round);
    return guest_passed();
}
