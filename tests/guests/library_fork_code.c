// Forks at the moments when remote code is being shown as data and hidden again, also of several
// threads at once: every child has all of the code.
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

#include "guest.h"
#include "libgprguest.h"

enum { ROUNDS = 60, THREADS = 3, THREAD_ROUNDS = 8 };

static uint64_t first_word(void) { return *(const volatile uint64_t*)(uintptr_t)remote_add; }

static void fork_and_call(int number) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) _exit(remote_add(number, 1));
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, (number + 1) << 8);
}

static void* fork_often(void* unused) {
    (void)unused;
    for (int i = 0; i < THREAD_ROUNDS; i++) {
        CHECK(first_word() != 0);
        fork_and_call(i);
    }
    return NULL;
}

int main(void) {
    CHECK_EQ(remote_add(1, 2), 3);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(first_word() != 0);
        struct timespec begin, now;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        do {
            clock_gettime(CLOCK_MONOTONIC, &now);
        } while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec <
                 i * 12000);
        fork_and_call(i);
    }
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, fork_often, NULL) == 0);
    }
    for (int i = 0; i < 100; i++) CHECK_EQ(remote_add(i, 2), i + 2);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    for (int i = 0; i < 50; i++) CHECK_EQ(remote_add(i, 3), i + 3);
    return guest_passed();
}
