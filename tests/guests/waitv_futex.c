// futex_waitv waits for any of several words; wakes tell which one.
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>

#include "guest.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

static uint32_t words[3];

static void* waker(void* which) {
    int i = (int)(intptr_t)which;
    usleep(10000);
    __atomic_store_n(&words[i], 1, __ATOMIC_SEQ_CST);
    while (syscall(SYS_futex, &words[i], FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 0 &&
           __atomic_load_n(&words[i], __ATOMIC_SEQ_CST) == 1)
        usleep(1000);
    return NULL;
}

int main(void) {
    struct futex_waitv waiters[3] = {0};
    for (int i = 0; i < 3; i++) {
        waiters[i].uaddr = (uintptr_t)&words[i];
        waiters[i].flags = FUTEX_32 | FUTEX_PRIVATE_FLAG;
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long result = syscall(SYS_futex_waitv, waiters, 3, 0, &now, CLOCK_MONOTONIC);
    if (result == -1 && errno == ENOSYS) SKIP("the kernel has no futex_waitv");
    CHECK(result == -1 && errno == ETIMEDOUT);
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, waker, (void*)(intptr_t)i);
        result = syscall(SYS_futex_waitv, waiters, 3, 0, NULL, 0);
        CHECK(result == i || (result == -1 && errno == EAGAIN));
        __atomic_store_n(&words[i], 0, __ATOMIC_SEQ_CST);
        pthread_join(thread, NULL);
    }
    words[1] = 5;
    CHECK_ERRNO(syscall(SYS_futex_waitv, waiters, 3, 0, NULL, 0), EAGAIN);
    return guest_passed();
}
