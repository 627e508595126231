// Processes are killed at all moments while their threads begin and call; the others do not notice.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "guest.h"

enum { ROUNDS = 60, STEP_US = 500, CALLERS = 2 };

static void* call(void* unused) {
    for (;;) (void)!getppid();
    return unused;
}

static void* nothing(void* unused) { return unused; }

static void make_threads(void) {
    pthread_t thread;
    for (int i = 0; i < CALLERS; i++) CHECK_EQ(pthread_create(&thread, NULL, call, NULL), 0);
    for (;;) {
        CHECK_EQ(pthread_create(&thread, NULL, nothing, NULL), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
}

int main(void) {
    for (int i = 0; i < ROUNDS; i++) {
        int ready[2];
        CHECK_EQ(pipe(ready), 0);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            CHECK_EQ(write(ready[1], "", 1), 1);
            make_threads();
        }
        char byte;
        CHECK_EQ(read(ready[0], &byte, 1), 1);
        close(ready[0]);
        close(ready[1]);
        usleep(i * STEP_US);
        CHECK_EQ(kill(child, SIGKILL), 0);
        int status = 0;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    return guest_passed();
}
