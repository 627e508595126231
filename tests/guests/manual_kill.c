// kill(2): whom it reaches, permissions, signal 0, and the signals' own order.
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "manual.h"

static volatile sig_atomic_t got[65], sender_is_me, code;
static void on_signal(int number, siginfo_t* info, void* context) {
    got[number]++;
    sender_is_me = info->si_pid == getpid();
    code = info->si_code;
}
static void handle(int number) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    CHECK_EQ(sigaction(number, &action, NULL), 0);
}

static void errors(void) {
    TRY(kill(getpid(), 65));
    TRY(kill(getpid(), -1));
    TRY(kill(999999, 0));
    TRY(kill(-999999, 0));
    TRY(kill(-2147483647 - 1, 0));
    TRY(kill(getpid(), 0));
    TRY(syscall(SYS_tgkill, getpid(), 999999, 0));
    TRY(syscall(SYS_tgkill, 0, 1, 0));
    TRY(syscall(SYS_tgkill, -1, 1, 0));
    TRY(syscall(SYS_tkill, 0, 0));
    TRY(syscall(SYS_tkill, -5, 0));
    TRY(syscall(SYS_tkill, getpid(), 0));
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_code = SI_USER;
    TRY(syscall(SYS_rt_sigqueueinfo, getppid(), 0, &info));
    info.si_code = SI_QUEUE;
    TRY(syscall(SYS_rt_sigqueueinfo, getppid(), 0, &info));
    TRY(syscall(SYS_rt_sigqueueinfo, getppid(), 0, manual_bad_pointer()));
    TRY(sigqueue(getpid(), 65, (union sigval){0}));
}

static void own(void) {
    for (int number = 1; number <= 64; number++) {
        if (number == SIGKILL || number == SIGSTOP || number == 32 || number == 33) continue;
        handle(number);
        int result = kill(getpid(), number);
        if (result || !got[number] || !sender_is_me || code != SI_USER)
            SAY("%d: %d %d %d %d", number, result, got[number], sender_is_me, code);
    }
    struct sigaction action = {.sa_handler = SIG_IGN};
    TRY(sigaction(SIGKILL, &action, NULL));
    TRY(sigaction(SIGSTOP, &action, NULL));
    TRY(sigaction(0, &action, NULL));
    SAY("all others came");
}

static void groups(void) {
    setpgid(0, 0);
    handle(SIGUSR1);
    int ready[2];
    CHECK_EQ(pipe(ready), 0);
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            got[SIGUSR1] = 0;
            sigset_t set;
            sigemptyset(&set);
            sigaddset(&set, SIGUSR1);
            sigprocmask(SIG_BLOCK, &set, NULL);
            if (i == 1) setpgid(0, 0);
            write(ready[1], "x", 1);
            siginfo_t info;
            struct timespec limit = {i == 1 ? 0 : 20, 200000000};
            int number = sigtimedwait(&set, &info, &limit);
            _exit(number == SIGUSR1 ? 1 : 2);
        }
    }
    char byte;
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    TRY(kill(0, SIGUSR1));
    SAY("me, too: %d", got[SIGUSR1]);
    int status;
    for (int i = 0; i < 2; i++) {
        waitpid(children[i], &status, 0);
        SAY("%#x", status);
    }
}

static void permissions(void) {
    pid_t mine = fork();
    if (mine == 0)
        for (;;) pause();
    if (fork() == 0) {
        manual_become_nobody();
        TRY(kill(mine, 0));
        TRY(kill(mine, SIGTERM));
        TRY(kill(mine, SIGCONT) == 0);  // of the same session
        TRY(kill(getpid(), 0));
        setsid();
        TRY(kill(mine, SIGCONT));
        TRY(kill(-getpgrp(), 0));
        _exit(0);
    }
    wait(NULL);
    TRY(kill(mine, SIGKILL));
    TRY(kill(mine, 0));  // a zombie still is one
    int status;
    TRY(waitpid(mine, &status, 0) == mine);
    SAY("%#x", status);
    TRY(kill(mine, 0));
}

// Standard signals are one, real-time signals queue in order, the lowest first.
static int order[16], seen;
static void on_ordered(int number, siginfo_t* info, void* context) {
    order[seen++] = number == SIGUSR1 ? 1 : (number - SIGRTMIN) * 100 + info->si_value.sival_int;
}
static void queues(void) {
    struct sigaction action = {.sa_sigaction = on_ordered, .sa_flags = SA_SIGINFO};
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGRTMIN + 1, &action, NULL);
    sigaction(SIGRTMIN + 2, &action, NULL);
    sigset_t all, old, pending;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
    for (int i = 0; i < 3; i++) {
        sigqueue(getpid(), SIGRTMIN + 2, (union sigval){.sival_int = i});
        sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = i});
        kill(getpid(), SIGUSR1);
    }
    sigpending(&pending);
    SAY("%d %d %d", sigismember(&pending, SIGUSR1), sigismember(&pending, SIGRTMIN + 1),
        sigismember(&pending, SIGRTMIN + 3));
    sigprocmask(SIG_SETMASK, &old, NULL);
    for (int i = 0; i < seen; i++) printf("%d ", order[i]);
    SAY("of %d", seen);
    // SIGCONT discards stops that wait, and the other way round.
    sigprocmask(SIG_BLOCK, &all, &old);
    kill(getpid(), SIGTSTP);
    kill(getpid(), SIGCONT);
    sigpending(&pending);
    SAY("%d %d", sigismember(&pending, SIGTSTP), sigismember(&pending, SIGCONT));
    kill(getpid(), SIGTSTP);
    sigpending(&pending);
    SAY("%d %d", sigismember(&pending, SIGTSTP), sigismember(&pending, SIGCONT));
    struct rlimit few = {2, 2};
    setrlimit(RLIMIT_SIGPENDING, &few);
    int queued = 0;
    while (queued < 10 && sigqueue(getpid(), SIGRTMIN + 3, (union sigval){.sival_int = 0}) == 0)
        queued++;
    SAY("no more than the limit: %d %s", queued <= 2, strerrorname_np(errno));
}

int main(void) {
    manual_begin();
    manual_in_child("errors", errors);
    manual_in_child("own", own);
    manual_in_child("groups", groups);
    manual_in_child("permissions", permissions);
    manual_in_child("queues", queues);
    return guest_passed();
}
