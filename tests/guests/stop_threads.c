// A process that computes in two threads is stopped from outside: none of them goes on until it is
// continued, which each notices as a gap in the time it looks at.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "guest.h"

enum { STOPPED_MS = 600, GAP_MS = 400, GIVE_UP_MS = 8000 };

static long now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void* await_gap(void* ready) {
    long begin = now_ms(), last = begin;
    CHECK_EQ(write(*(int*)ready, "r", 1), 1);
    for (;;) {
        long now = now_ms();
        if (now - last >= GAP_MS) return NULL;
        if (now - begin > GIVE_UP_MS) _exit(1);
        last = now;
    }
}

static void sleep_ms(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

int main(void) {
    int ready[2], seen[2], status;
    char byte = 0;
    CHECK_EQ(pipe(ready), 0);
    CHECK_EQ(pipe(seen), 0);
    pid_t child = fork();
    if (child == 0) {
        pthread_t other;
        pthread_create(&other, NULL, await_gap, &ready[1]);
        await_gap(&ready[1]);
        pthread_join(other, NULL);
        CHECK_EQ(read(seen[0], &byte, 1), 1);
        _exit(17);
    }
    for (int i = 0; i < 2; i++) CHECK_EQ(read(ready[0], &byte, 1), 1);
    sleep_ms(200);
    CHECK_EQ(kill(child, SIGSTOP), 0);
    CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
    CHECK(WIFSTOPPED(status));
    sleep_ms(STOPPED_MS);
    CHECK_EQ(kill(child, SIGCONT), 0);
    CHECK_EQ(waitpid(child, &status, WCONTINUED), child);
    CHECK(WIFCONTINUED(status));
    CHECK_EQ(write(seen[1], &byte, 1), 1);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(WEXITSTATUS(status), 17);
    return guest_passed();
}
