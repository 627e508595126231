// futex(2): each operation, its errors, time limits, requeueing, bit sets, across processes.
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "manual.h"

static _Atomic uint32_t *word, *other;  // shared memory

static long futex(void* at, int operation, uint32_t value, const void* time, void* second,
                  uint32_t third) {
    return syscall(SYS_futex, at, operation, value, time, second, third);
}

static void errors(void) {
    struct timespec none = {0, 0}, wrong = {0, 1000000000}, negative = {-1, 0};
    *word = 5;
    TRY(futex(word, FUTEX_WAIT, 4, NULL, NULL, 0));
    TRY(futex(word, FUTEX_WAIT, 5, &none, NULL, 0));
    TRY(futex(word, FUTEX_WAIT, 5, &wrong, NULL, 0));
    TRY(futex(word, FUTEX_WAIT, 5, &negative, NULL, 0));
    TRY(futex(word, FUTEX_WAIT, 5, manual_bad_pointer(), NULL, 0));
    TRY(futex((char*)word + 1, FUTEX_WAIT, 5, &none, NULL, 0));
    TRY(futex((char*)word + 2, FUTEX_WAKE, 1, NULL, NULL, 0));
    TRY(futex(manual_bad_pointer(), FUTEX_WAIT, 5, &none, NULL, 0));
    TRY(futex(NULL, FUTEX_WAIT, 5, &none, NULL, 0));
    TRY(futex(NULL, FUTEX_WAKE, 1, NULL, NULL, 0));
    TRY(futex(word, FUTEX_WAKE, 1, NULL, NULL, 0));
    TRY(futex(word, 99, 1, NULL, NULL, 0));
    TRY(futex(word, FUTEX_FD, 1, NULL, NULL, 0));
    TRY(futex(word, FUTEX_WAIT_BITSET, 5, &none, NULL, 0));
    TRY(futex(word, FUTEX_WAKE_BITSET, 1, NULL, NULL, 0));
    TRY(futex(word, FUTEX_WAIT_BITSET, 5, &none, NULL, FUTEX_BITSET_MATCH_ANY));
    TRY(futex(word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 5, &none, NULL, 1));
    TRY(futex(word, FUTEX_WAKE | FUTEX_CLOCK_REALTIME, 1, NULL, NULL, 0));
    TRY(futex(word, FUTEX_CMP_REQUEUE, 1, (void*)1, other, 4));
    TRY(futex(word, FUTEX_CMP_REQUEUE, 1, (void*)1, other, 5));
    TRY(futex(word, FUTEX_CMP_REQUEUE, (uint32_t)-1, (void*)1, other, 5));
    TRY(futex(word, FUTEX_REQUEUE, 1, (void*)1, (char*)other + 1, 0));
    TRY(futex(word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
    *word = 0;
    TRY(futex(word, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0));
    SAY("owned %d", *word == (uint32_t)syscall(SYS_gettid));
    TRY(futex(word, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0));
    TRY(futex(word, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
    TRY(futex(word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
    SAY("free %d", *word == 0);
    *word = 1 << 29;  // nobody's number
    TRY(futex(word, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
    TRY(futex(word, FUTEX_CMP_REQUEUE_PI, 2, (void*)1, other, *word));
    TRY(futex(word, FUTEX_WAIT_REQUEUE_PI, *word, NULL, word, 0));
}

static void operations(void) {
    // Sets the second, compares what it was, wakes.
    *other = 3;
    uint32_t set_9_if_greater_2 = FUTEX_OP(FUTEX_OP_SET, 9, FUTEX_OP_CMP_GT, 2);
    TRY(futex(word, FUTEX_WAKE_OP, 1, (void*)1, other, set_9_if_greater_2));
    SAY("%u", *other);
    TRY(futex(word, FUTEX_WAKE_OP, 1, (void*)1, other,
              FUTEX_OP(FUTEX_OP_ADD, 4, FUTEX_OP_CMP_EQ, 9)));
    SAY("%u", *other);
    TRY(futex(word, FUTEX_WAKE_OP, 1, (void*)1, other,
              FUTEX_OP(FUTEX_OP_ANDN, 4, FUTEX_OP_CMP_EQ, 9)));
    SAY("%u", *other);
    TRY(futex(word, FUTEX_WAKE_OP, 1, (void*)1, other,
              FUTEX_OP((FUTEX_OP_XOR | FUTEX_OP_OPARG_SHIFT), 5, FUTEX_OP_CMP_NE, 0)));
    SAY("%u", *other);
    const uint32_t comparisons[] = {FUTEX_OP_CMP_EQ,    FUTEX_OP_CMP_NE, FUTEX_OP_CMP_LT,
                                    FUTEX_OP_CMP_LE,    FUTEX_OP_CMP_GT, FUTEX_OP_CMP_GE,
                                    FUTEX_OP_CMP_GE + 1};
    for (size_t i = 0; i < sizeof comparisons / sizeof comparisons[0]; i++) {
        *other = (uint32_t)-7;  // both numbers are signed
        TRY(futex(word, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 1, (void*)1, other,
                  FUTEX_OP(FUTEX_OP_OR, 2, comparisons[i], 0xffd)));
        SAY("%d", (int)*other);
    }
    TRY(futex(word, FUTEX_WAKE_OP, 1, (void*)1, other, FUTEX_OP(6, 5, 0, 0)));
    TRY(futex(word, FUTEX_WAKE_OP, 1, (void*)1, manual_bad_pointer(), set_9_if_greater_2));
}

static _Atomic int waiting, woken;
static void* waiter(void* bits) {
    waiting++;
    long result = futex(word, FUTEX_WAIT_BITSET, 1, NULL, NULL, (uint32_t)(uintptr_t)bits);
    if (result == 0) woken++;
    return NULL;
}
static void until(_Atomic int* what, int goal) {
    for (int i = 0; i < 2000 && *what < goal; i++) usleep(5000);
}

static void bit_sets(void) {
    *word = 1;
    pthread_t threads[3];
    for (uintptr_t i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, waiter, (void*)((uintptr_t)1 << i));
    until(&waiting, 3);
    usleep(100000);
    TRY(futex(word, FUTEX_WAKE_BITSET, 5, NULL, NULL, 8));
    TRY(futex(word, FUTEX_WAKE_BITSET, 5, NULL, NULL, 2));
    until(&woken, 1);
    SAY("woken %d", woken);
    TRY(futex(word, FUTEX_CMP_REQUEUE, 0, (void*)5, other, 1));
    TRY(futex(word, FUTEX_WAKE, 5, NULL, NULL, 0));
    TRY(futex(other, FUTEX_WAKE, 5, NULL, NULL, 0));
    until(&woken, 3);
    SAY("woken %d", woken);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
}

static void nothing(int number) { (void)number; }
static void interrupted(void) {
    struct sigaction action = {.sa_handler = nothing};
    sigaction(SIGALRM, &action, NULL);
    struct timespec long_time = {50, 0};
    *word = 1;
    alarm(1);
    TRY(futex(word, FUTEX_WAIT, 1, &long_time, NULL, 0));
    struct timespec past = {1, 0};
    TRY(futex(word, FUTEX_WAIT_BITSET, 1, &past, NULL, ~0u));
    TRY(futex(word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 1, &past, NULL, ~0u));
    *other = 1 << 29;
    TRY(futex(other, FUTEX_LOCK_PI, 0, &past, NULL, 0));
    *other = 0;
}

// Who waits is put before a lock, which is its own when the wait ends.
static void* requeued(void* unused) {
    waiting++;
    long result = futex(word, FUTEX_WAIT_REQUEUE_PI, 1, NULL, other, 0);
    SAY("requeued: %ld, owner %d", result,
        (*other & FUTEX_TID_MASK) == (uint32_t)syscall(SYS_gettid));
    TRY(futex(other, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0));
    return unused;
}

static void requeue_to_lock(void) {
    *word = 1;
    *other = 0;
    waiting = 0;
    pthread_t thread;
    TRY(futex(other, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
    CHECK_EQ(pthread_create(&thread, NULL, requeued, NULL), 0);
    until(&waiting, 1);
    usleep(100000);
    TRY(futex(word, FUTEX_CMP_REQUEUE_PI, 1, (void*)1, other, 2));
    TRY(futex(word, FUTEX_CMP_REQUEUE_PI, 1, (void*)1, word + 2, 1));
    TRY(futex(word, FUTEX_CMP_REQUEUE_PI, 1, (void*)1, other, 1));
    SAY("waiters %d", (*other & FUTEX_WAITERS) != 0);
    long unlocked = futex(other, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);  // and the other one speaks
    pthread_join(thread, NULL);
    SAY("unlocked %ld", unlocked);
    SAY("%#x", *other);
    struct timespec past = {1, 0};
    TRY(futex(word, FUTEX_WAIT_REQUEUE_PI, 1, &past, other, 0));
    TRY(futex(word, FUTEX_WAIT_REQUEUE_PI, 2, NULL, other, 0));
}

static void processes(void) {
    *word = 0;
    *other = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        usleep(40000);
        for (uint32_t i = 0; i < 50; i++) {
            while (*word != 2 * i + 1) futex(word, FUTEX_WAIT, 2 * i, NULL, NULL, 0);
            *word = 2 * i + 2;
            futex(word, FUTEX_WAKE, 1, NULL, NULL, 0);
        }
        _exit(0);
    }
    for (uint32_t i = 0; i < 50; i++) {
        *word = 2 * i + 1;
        futex(word, FUTEX_WAKE, 1, NULL, NULL, 0);
        while (*word != 2 * i + 2) futex(word, FUTEX_WAIT, 2 * i + 1, NULL, NULL, 0);
    }
    int status;
    waitpid(child, &status, 0);
    SAY("%u %#x", *word, status);
    // One that dies with a PI lock whose list it has not told leaves it behind.
    child = fork();
    if (child == 0) {
        *other = 0;
        futex(other, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
        _exit(0);
    }
    waitpid(child, &status, 0);
    SAY("%#x still owned %d", status, (*other & FUTEX_TID_MASK) == (uint32_t)child);
    TRY(futex(other, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0));
}

int main(void) {
    manual_begin();
    word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    other = word + 16;
    manual_in_child("errors", errors);
    manual_in_child("operations", operations);
    manual_in_child("bit sets", bit_sets);
    manual_in_child("interrupted", interrupted);
    manual_in_child("requeue to a lock", requeue_to_lock);
    manual_in_child("processes", processes);
    return guest_passed();
}
