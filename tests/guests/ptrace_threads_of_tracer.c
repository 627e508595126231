// The tracer is one thread: others of its process may wait for its tracees, but ask nothing of
// them.
#include <pthread.h>

#include "ptrace.h"

static pid_t child;

static void* waits(void* unused) {
    (void)unused;
    CHECK_WAIT(child, STOPPED(SIGUSR1, 0));
    CHECK_ERRNO(ptrace(PTRACE_CONT, child, 0, 0), ESRCH);
    CHECK_ERRNO(waitpid(child, NULL, __WALL | __WNOTHREAD), ECHILD);
    return NULL;
}

static void* traces(void* unused) {
    (void)unused;
    child = traced_child(wait_for_ever);
    return NULL;
}

int main(void) {
    child = traced_child(wait_for_ever);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, waits, NULL), 0);
    usleep(10000);
    CHECK_EQ(kill(child, SIGUSR1), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    end_child(child);

    // With the thread its tracees are free.
    CHECK_EQ(pthread_create(&thread, NULL, traces, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    usleep(10000);
    CHECK_ERRNO(ptrace(PTRACE_CONT, child, 0, 0), ESRCH);
    CHECK_EQ(kill(child, SIGUSR1), 0);
    CHECK_WAIT(child, SIGUSR1);
    return guest_passed();
}
