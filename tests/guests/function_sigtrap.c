// SIGTRAP is the program's own, whatever else uses it: blocked, ignored, handled, pending, and for
// its own breakpoints, while it calls functions of a library.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "guest.h"
#include "libgprfunctions.h"

static volatile sig_atomic_t traps, others;
static volatile int last_code;

static void on_trap(int signal, siginfo_t* info, void* context) {
    (void)signal, (void)context;
    last_code = info->si_code;
    traps++;
}

// With every signal blocked.
static void on_other(int signal) {
    (void)signal;
    others += chosen_add(1, 0);
}

static int is_blocked(int signal) {
    sigset_t now;
    CHECK_EQ(sigprocmask(SIG_SETMASK, NULL, &now), 0);
    return sigismember(&now, signal);
}

static struct sigaction action_now(void) {
    struct sigaction now;
    CHECK_EQ(sigaction(SIGTRAP, NULL, &now), 0);
    return now;
}

static void blocked(void) {
    sigset_t trap, before;
    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &trap, &before), 0);
    CHECK_EQ(chosen_add(1, 1), 2);
    CHECK_EQ(is_blocked(SIGTRAP), 1);
    CHECK(action_now().sa_sigaction == on_trap);
    // One is waiting, and goes on waiting.
    CHECK_EQ(raise(SIGTRAP), 0);
    CHECK_EQ(chosen_add(2, 1), 3);
    chosen_nothing();
    sigset_t pending;
    CHECK_EQ(sigpending(&pending), 0);
    CHECK_EQ(sigismember(&pending, SIGTRAP), 1);
    CHECK_EQ(is_blocked(SIGTRAP), 1);
    int seen = traps;
    CHECK_EQ(sigprocmask(SIG_SETMASK, &before, NULL), 0);
    CHECK_EQ(traps, seen + 1);
    CHECK_EQ(last_code, SI_TKILL);
    CHECK_EQ(chosen_add(2, 2), 4);
    CHECK_EQ(is_blocked(SIGTRAP), 0);
    // The same of one for the whole process.
    CHECK_EQ(sigprocmask(SIG_BLOCK, &trap, NULL), 0);
    CHECK_EQ(kill(getpid(), SIGTRAP), 0);
    CHECK_EQ(chosen_add(3, 2), 5);
    CHECK_EQ(sigpending(&pending), 0);
    CHECK_EQ(sigismember(&pending, SIGTRAP), 1);
    CHECK_EQ(sigprocmask(SIG_SETMASK, &before, NULL), 0);
    CHECK_EQ(traps, seen + 2);
    CHECK_EQ(last_code, SI_USER);
}

static void own_breakpoints(void) {
    for (int i = 0; i < 5; i++) {
        int seen = traps;
        __asm__ volatile("int3");
        CHECK_EQ(traps, seen + 1);
        CHECK_EQ(last_code, SI_KERNEL);
        CHECK_EQ(chosen_breakpoint(), 3);
        CHECK_EQ(traps, seen + 2);
        CHECK_EQ(last_code, SI_KERNEL);
        CHECK_EQ(chosen_add(i, i), 2 * i);
    }
}

static void in_handlers(void) {
    struct sigaction all = {.sa_handler = on_other};
    sigfillset(&all.sa_mask);
    CHECK_EQ(sigaction(SIGUSR1, &all, NULL), 0);
    for (int i = 1; i <= 5; i++) {
        CHECK_EQ(raise(SIGUSR1), 0);
        CHECK_EQ(others, i);
        CHECK(action_now().sa_sigaction == on_trap);
        CHECK_EQ(is_blocked(SIGTRAP), 0);
    }
}

static void* with_own_mask(void* argument) {
    int blocks = (int)(intptr_t)argument % 2;
    sigset_t all;
    sigfillset(&all);
    CHECK_EQ(pthread_sigmask(blocks ? SIG_BLOCK : SIG_UNBLOCK, &all, NULL), 0);
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(chosen_add(i, 2), i + 2);
        sigset_t now;
        CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &now), 0);
        CHECK_EQ(sigismember(&now, SIGTRAP), blocks);
        CHECK_EQ(sigismember(&now, SIGUSR1), blocks);
    }
    return NULL;
}

static void threads(void) {
    pthread_t list[4];
    int seen = traps;
    for (intptr_t i = 0; i < 4; i++) pthread_create(&list[i], NULL, with_own_mask, (void*)i);
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_join(list[i], NULL), 0);
    CHECK_EQ(traps, seen);
    CHECK(action_now().sa_sigaction == on_trap);
    CHECK_EQ(is_blocked(SIGTRAP), 0);
}

static void ignored(void) {
    signal(SIGTRAP, SIG_IGN);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(chosen_add(i, 1), i + 1);
        CHECK(action_now().sa_handler == SIG_IGN);
        CHECK_EQ(raise(SIGTRAP), 0);
    }
}

static void by_default(void) {
    pid_t child = fork();
    if (child == 0) {
        signal(SIGTRAP, SIG_DFL);
        chosen_add(1, 1);
        __asm__ volatile("int3");
        _exit(1);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP);
}

int main(void) {
    struct sigaction handler = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    CHECK_EQ(sigaction(SIGTRAP, &handler, NULL), 0);
    CHECK_EQ(chosen_add(1, 2), 3);
    CHECK_EQ(traps, 0);
    own_breakpoints();
    blocked();
    in_handlers();
    threads();
    own_breakpoints();
    ignored();
    by_default();
    return guest_passed();
}
