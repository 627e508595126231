// clone(2), CLONE_VFORK with CLONE_THREAD: the caller goes on once the new thread has ended or
// executed a program, and handles no signal before; other threads go on meanwhile.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

static char stack[1 << 16] __attribute__((aligned(16)));
static const int flags =
    CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_VFORK;
static volatile int done, handled, others;
static volatile pid_t caller;
static char* self;
static int ends[2];

static int begin(int (*function)(void*)) {
    done = 0;
    caller = (pid_t)syscall(SYS_gettid);
    return clone(function, stack + sizeof stack, flags, NULL);
}

static void pause_ms(long ms) {
    struct timespec time = {0, ms * 1000000};
    while (syscall(SYS_nanosleep, &time, &time) == -1) {
    }
}

static int waits(void* nothing) {
    (void)nothing;
    pause_ms(60);
    done = 1;
    return 0;
}

static void on_signal(int signal) {
    (void)signal;
    handled = done ? 1 : 2;
}

static int sends(void* nothing) {
    (void)nothing;
    syscall(SYS_tgkill, getpid(), caller, SIGUSR1);
    pause_ms(60);
    done = handled == 0;
    return 0;
}

static int executes(void* nothing) {
    (void)nothing;
    pause_ms(60);
    char* arguments[] = {self, "executed", NULL};
    char* environment[] = {NULL};
    syscall(SYS_execve, self, arguments, environment);
    return 1;
}

static void* counts(void* nothing) {
    (void)nothing;
    while (!done) {
        others++;
        pause_ms(1);
    }
    return NULL;
}

int main(int argc, char** argv) {
    if (argc == 2) return 7;
    self = argv[0];
    for (int i = 0; i < 3; i++) {
        CHECK(begin(waits) > 0);
        CHECK_EQ(done, 1);
    }
    struct sigaction action = {.sa_handler = on_signal};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    CHECK(begin(sends) > 0);
    CHECK_EQ(done, 1);
    CHECK_EQ(handled, 1);
    pthread_t thread;
    done = 0;
    CHECK_EQ(pthread_create(&thread, NULL, counts, NULL), 0);
    int before = others;
    CHECK(begin(waits) > 0);
    CHECK_EQ(done, 1);
    CHECK(others > before);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        begin(executes);
        CHECK_EQ(write(ends[1], "x", 1), 1);
        _exit(1);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 7 << 8);
    CHECK_EQ(close(ends[1]), 0);
    char byte;
    CHECK_EQ(read(ends[0], &byte, 1), 0);
    return guest_passed();
}
