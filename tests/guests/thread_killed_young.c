// Processes end at all moments while their threads begin and call: they are killed, one of their
// threads exits for all, or one executes another program. The others do not notice.
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "guest.h"

enum { ROUNDS = 60, STEP_US = 1200, CALLERS = 2 };
enum { EXITED = 7, EXECUTED = 9 };
enum way { IS_KILLED, EXITS, EXECUTES, WAYS };

static enum way way;
static int delay_us;

static void* call(void* unused) {
    for (;;) (void)!getppid();
    return unused;
}

static void* nothing(void* unused) { return unused; }

static void* end_all(void* unused) {
    usleep(delay_us);
    if (way == EXITS) _exit(EXITED);
    if (way == EXECUTES) execl("/proc/self/exe", "executed", "again", NULL);
    for (;;) pause();
    return unused;
}

// False: another thread is about to execute a program, and who has its current directory in common
// with it makes none meanwhile (copy_fs() in the kernel).
static bool make_thread(pthread_t* thread, void* (*does)(void*)) {
    int error = pthread_create(thread, NULL, does, NULL);
    if (error == EAGAIN && way == EXECUTES) return false;
    CHECK_EQ(error, 0);
    return true;
}

static void make_threads(void) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, end_all, NULL), 0);
    for (int i = 0; i < CALLERS; i++) make_thread(&thread, call);
    for (;;) {
        if (make_thread(&thread, nothing)) CHECK_EQ(pthread_join(thread, NULL), 0);
    }
}

static bool ended_as_wanted(int status) {
    if (way == IS_KILLED) return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    return WIFEXITED(status) && WEXITSTATUS(status) == (way == EXITS ? EXITED : EXECUTED);
}

int main(int argc, char** argv) {
    (void)argv;
    if (argc > 1) return EXECUTED;
    for (int i = 0; i < ROUNDS; i++) {
        way = i % WAYS;
        delay_us = i * STEP_US;
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
        if (way == IS_KILLED) {
            usleep(delay_us);
            CHECK_EQ(kill(child, SIGKILL), 0);
        }
        int status = 0;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(ended_as_wanted(status));
    }
    return guest_passed();
}
