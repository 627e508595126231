// Futex calls about two words reach who waits for either of them: FUTEX_WAKE_OP, futex_requeue.
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "guest.h"

enum { ROUNDS = 20, WAITERS = 3, NUMBER_REQUEUE = 456, WORD_OF_32_BITS = 2, OF_PROCESS = 128 };

struct waitv {
    uint64_t value, address;
    uint32_t flags, reserved;
};

static int first, second;

static long wait_for(int* word) {
    return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

static void* until_second(void* argument) {
    while (__atomic_load_n(&second, __ATOMIC_SEQ_CST) == 0) wait_for(&second);
    return argument;
}

static void* until_first(void* argument) {
    while (__atomic_load_n(&first, __ATOMIC_SEQ_CST) == 0) wait_for(&first);
    return argument;
}

static void wake_by_operation(void) {
    pthread_t thread;
    first = second = 0;
    CHECK_EQ(pthread_create(&thread, NULL, until_second, NULL), 0);
    usleep(10000);
    int operation = FUTEX_OP(FUTEX_OP_SET, 1, FUTEX_OP_CMP_EQ, 0);
    CHECK(syscall(SYS_futex, &first, FUTEX_WAKE_OP_PRIVATE, 1, (void*)1, &second, operation) >= 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void requeue(void) {
    pthread_t threads[WAITERS];
    first = second = 0;
    for (int i = 0; i < WAITERS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, until_first, NULL), 0);
    }
    usleep(10000);
    __atomic_store_n(&first, 1, __ATOMIC_SEQ_CST);
    struct waitv words[2] = {{1, (uintptr_t)&first, WORD_OF_32_BITS | OF_PROCESS, 0},
                             {0, (uintptr_t)&second, WORD_OF_32_BITS | OF_PROCESS, 0}};
    long result = syscall(NUMBER_REQUEUE, words, 0, 1, WAITERS);
    CHECK(result >= 0 || errno == ENOSYS);  // Linux 6.7
    if (result < 0) syscall(SYS_futex, &first, FUTEX_WAKE_PRIVATE, WAITERS, NULL, NULL, 0);
    syscall(SYS_futex, &second, FUTEX_WAKE_PRIVATE, WAITERS, NULL, NULL, 0);
    for (int i = 0; i < WAITERS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

int main(void) {
    for (int i = 0; i < ROUNDS; i++) {
        wake_by_operation();
        requeue();
    }
    return guest_passed();
}
