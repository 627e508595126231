// What seccomp(2) answers: which thread a TSYNC failed for, actions without a tracer, numbers
// beyond what an errno can be, which actions there are.
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "call_filter.h"
#include "guest.h"

#ifndef SECCOMP_FILTER_FLAG_TSYNC_ESRCH
#define SECCOMP_FILTER_FLAG_TSYNC_ESRCH 16
#endif

static void show(const char* what, int call) {
    errno = 0;
    long result = syscall(call, 0);
    printf("%s: %ld, errno %d\n", what, result > 0 ? 1 : result, errno);
}

static pthread_barrier_t step;
static pid_t other_tid;

static void* diverges(void* unused) {
    other_tid = (pid_t)syscall(SYS_gettid);
    CHECK_EQ(install(SYS_getpgid, SECCOMP_RET_ERRNO | 33, 0), 0);
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    show("it is under its own", SYS_getpgid);
    show("it is not under the other's", SYS_getsid);
    show("nor under the failed one", SYS_getpriority);
    return unused;
}

static void* only_lives(void* unused) {
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    return unused;
}

static void whose(const char* what, long result) {
    int error = errno;
    printf("%s: %s", what,
           result == 0                     ? "done"
           : result == syscall(SYS_gettid) ? "the caller"
           : result == other_tid           ? "the other thread"
           : result == -1                  ? "an error"
                                           : "somebody");
    if (result == -1) printf(", errno %d", error);
    printf("\n");
}

// One other thread is under a filter that the caller is not under.
static void diverged(void) {
    pthread_t other, bystander;
    pthread_barrier_init(&step, NULL, 3);
    CHECK_EQ(pthread_create(&other, NULL, diverges, NULL), 0);
    CHECK_EQ(pthread_create(&bystander, NULL, only_lives, NULL), 0);
    pthread_barrier_wait(&step);
    whose("tsync", install(SYS_getpriority, SECCOMP_RET_ERRNO | 34, SECCOMP_FILTER_FLAG_TSYNC));
    whose("tsync with esrch", install(SYS_getpriority, SECCOMP_RET_ERRNO | 34,
                                      SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH));
    whose("alone", install(SYS_getsid, SECCOMP_RET_ERRNO | 35, 0));
    whose("tsync, both have one",
          install(SYS_getpriority, SECCOMP_RET_ERRNO | 34, SECCOMP_FILTER_FLAG_TSYNC));
    show("nothing came of it", SYS_getpriority);
    pthread_barrier_wait(&step);
    CHECK_EQ(pthread_join(other, NULL), 0);
    CHECK_EQ(pthread_join(bystander, NULL), 0);
}

static void answers(void) {
    CHECK_EQ(install(SYS_getpgid, SECCOMP_RET_TRACE | 7, 0), 0);
    show("traced by nobody", SYS_getpgid);
    CHECK_EQ(install(SYS_getsid, SECCOMP_RET_ERRNO | 5000, 0), 0);
    show("number 5000", SYS_getsid);
    CHECK_EQ(install(SYS_getpriority, SECCOMP_RET_ERRNO | 0, 0), 0);
    show("number 0", SYS_getpriority);
    CHECK_EQ(install(SYS_sched_getscheduler, SECCOMP_RET_ERRNO | 4095, 0), 0);
    show("number 4095", SYS_sched_getscheduler);
    CHECK_EQ(install(SYS_sched_getscheduler, SECCOMP_RET_LOG, 0), 0);
    show("the stricter counts", SYS_sched_getscheduler);
    CHECK_EQ(install(SYS_getpgid, SECCOMP_RET_ERRNO | 6, 0), 0);
    show("errno before trace", SYS_getpgid);
    CHECK_EQ(install(SYS_getpgrp, SECCOMP_RET_USER_NOTIF, 0), 0);
    show("no listener", SYS_getpgrp);
}

static void available(void) {
    static const unsigned actions[] = {
        SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP,
        SECCOMP_RET_ERRNO,        SECCOMP_RET_USER_NOTIF,  SECCOMP_RET_TRACE,
        SECCOMP_RET_LOG,          SECCOMP_RET_ALLOW,       0x12345678,
    };
    for (unsigned i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        errno = 0;
        long result = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &actions[i]);
        printf("action %#x: %ld, errno %d\n", actions[i], result, errno);
    }
    errno = 0;
    printf("flags: %ld, ", syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 1, &actions[0]));
    printf("errno %d\n", errno);
    errno = 0;
    printf("no address: %ld, ", syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, NULL));
    printf("errno %d\n", errno);
    unsigned short sizes[3] = {0};
    CHECK_EQ(syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, sizes), 0);
    printf("sizes %d %d %d\n", sizes[0], sizes[1], sizes[2]);
    errno = 0;
    printf("mode %d: %ld, ", 99, syscall(SYS_seccomp, 99, 0, NULL));
    printf("errno %d\n", errno);
    errno = 0;
    printf("unknown flag: %ld, ", install(SYS_getsid, SECCOMP_RET_ERRNO | 5, 1 << 20));
    printf("errno %d\n", errno);
    errno = 0;
    printf("tsync with a listener: %ld, ",
           install(SYS_getsid, SECCOMP_RET_ERRNO | 5,
                   SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_NEW_LISTENER));
    printf("errno %d\n", errno);
    printf("state %d\n", prctl(PR_GET_SECCOMP));
}

static void on_sys(int number, siginfo_t* info, void* unused) {
    (void)unused;
    printf("signal %d, code %d, errno %d, call %s\n", number, info->si_code, info->si_errno,
           info->si_syscall == SYS_getpgid ? "getpgid" : "another");
}

static void trapped(void) {
    struct sigaction action = {.sa_sigaction = on_sys, .sa_flags = SA_SIGINFO};
    CHECK_EQ(sigaction(SIGSYS, &action, NULL), 0);
    CHECK_EQ(install(SYS_getpgid, SECCOMP_RET_TRAP | 123, 0), 0);
    show("trapped", SYS_getpgid);
    printf("state %d\n", prctl(PR_GET_SECCOMP));
}

static void trapped_but_ignored(void) {
    signal(SIGSYS, SIG_IGN);
    CHECK_EQ(install(SYS_getpgid, SECCOMP_RET_TRAP, 0), 0);
    syscall(SYS_getpgid, 0);
    printf("still there\n");
}

static void trapped_but_blocked(void) {
    struct sigaction action = {.sa_sigaction = on_sys, .sa_flags = SA_SIGINFO};
    CHECK_EQ(sigaction(SIGSYS, &action, NULL), 0);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGSYS);
    sigprocmask(SIG_BLOCK, &set, NULL);
    CHECK_EQ(install(SYS_getpgid, SECCOMP_RET_TRAP, 0), 0);
    syscall(SYS_getpgid, 0);
    printf("still there\n");
}

static void killed_though_handled(void) {
    struct sigaction action = {.sa_sigaction = on_sys, .sa_flags = SA_SIGINFO};
    CHECK_EQ(sigaction(SIGSYS, &action, NULL), 0);
    CHECK_EQ(install(SYS_getpgid, SECCOMP_RET_KILL_PROCESS, 0), 0);
    syscall(SYS_getpgid, 0);
    printf("still there\n");
}

static void strict_mode(void) {
    CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT), 0);
    prctl(PR_GET_SECCOMP);
    write(STDOUT_FILENO, "still there\n", 12);
    syscall(SYS_exit, 0);
}

static void in_child(const char* what, void (*does)(void)) {
    printf("-- %s\n", what);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        CHECK_EQ(prctl(PR_SET_DUMPABLE, 0), 0);
        does();
        fflush(stdout);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    printf("%s %d\n", WIFSIGNALED(status) ? "killed by" : "exited with",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

int main(void) {
    in_child("a thread diverged", diverged);
    in_child("answers", answers);
    in_child("available", available);
    in_child("trapped", trapped);
    in_child("trapped, ignored", trapped_but_ignored);
    in_child("trapped, blocked", trapped_but_blocked);
    in_child("killed", killed_though_handled);
    in_child("strict", strict_mode);
    return guest_passed();
}
