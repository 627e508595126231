// A child that has its parent's memory traces its parent, as LeakSanitizer does when a program
// ends.
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include "ptrace.h"

static char stack[1 << 16] __attribute__((aligned(16)));
static volatile int begun;
static volatile long seen;
static pid_t tids[2];
static int ready[2];

static int tracer(void* unused) {
    (void)unused;
    while (!begun) sched_yield();
    for (int i = 0; i < 2; i++) {
        if (ptrace(PTRACE_ATTACH, tids[i], 0, 0) != 0) return 10 + errno;
        int status = 0;
        if (waitpid(tids[i], &status, __WALL) != tids[i]) return 2;
        if (status != STOPPED(SIGSTOP, 0)) return 3;
        struct user_regs_struct regs;
        if (ptrace(PTRACE_GETREGS, tids[i], 0, &regs) != 0 || regs.rsp == 0) return 4;
        seen++;
    }
    for (int i = 0; i < 2; i++) {
        if (ptrace(PTRACE_DETACH, tids[i], 0, 0) != 0) return 5;
    }
    return 0;
}

static void* other(void* unused) {
    (void)unused;
    tids[1] = (pid_t)syscall(SYS_gettid);
    CHECK_EQ(write(ready[1], "x", 1), 1);
    for (;;) pause();
}

int main(void) {
    char byte = 0;
    pthread_t thread;
    tids[0] = getpid();
    CHECK_EQ(pipe(ready), 0);
    CHECK_EQ(pthread_create(&thread, NULL, other, NULL), 0);
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    pid_t child = clone(tracer, stack + sizeof stack,
                        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_UNTRACED, NULL);
    CHECK(child > 0);
    prctl(PR_SET_PTRACER, child, 0, 0, 0);
    begun = 1;
    int status = 0;
    pid_t got = 0;
    while ((got = waitpid(child, &status, __WALL)) < 0 && errno == EINTR) continue;
    CHECK_EQ(got, child);
    CHECK_EQ(status, 0);
    CHECK_EQ(seen, 2);
    return guest_passed();
}
