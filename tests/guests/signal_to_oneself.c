// Threads that send signals to themselves: what the handler is told, which signals it blocks, and
// what holds when it has returned, or has been left by a jump: signal(7), sigaction(2), tgkill(2).
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "guest.h"

enum { rounds = 400, threads = 3 };

static volatile sig_atomic_t seen[NSIG], depth, deepest;
static sigjmp_buf way_out;
static siginfo_t told;

static void set(int signal, void (*handler)(int, siginfo_t*, void*), int flags, int also) {
    struct sigaction action = {0};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    if (also) sigaddset(&action.sa_mask, also);
    CHECK_EQ(sigaction(signal, &action, NULL), 0);
}

static int blocks(int signal) {
    sigset_t now;
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &now), 0);
    return sigismember(&now, signal);
}

static int is_pending(int signal) {
    sigset_t pending;
    CHECK_EQ(sigpending(&pending), 0);
    return sigismember(&pending, signal);
}

static void tell(int signal, siginfo_t* info, void* context) {
    (void)context;
    told = *info;
    seen[signal]++;
    CHECK(blocks(signal));
}

static void count(int signal, siginfo_t* info, void* context) {
    (void)info, (void)context;
    seen[signal]++;
}

static void told_of_sender(void) {
    set(SIGUSR1, tell, 0, 0);
    for (int i = 0; i < rounds; i++) {
        memset(&told, 0, sizeof told);
        CHECK_EQ(raise(SIGUSR1), 0);
        CHECK_EQ(seen[SIGUSR1], i + 1);
        CHECK_EQ(told.si_signo, SIGUSR1);
        CHECK_EQ(told.si_code, SI_TKILL);
        CHECK_EQ(told.si_pid, getpid());
        CHECK_EQ(told.si_uid, getuid());
        CHECK(!blocks(SIGUSR1));
    }
    // The same by tkill, and as a signal of the process.
    CHECK_EQ(syscall(SYS_tkill, syscall(SYS_gettid), SIGUSR1), 0);
    CHECK_EQ(seen[SIGUSR1], rounds + 1);
    CHECK_EQ(kill(getpid(), SIGUSR1), 0);
    CHECK_EQ(seen[SIGUSR1], rounds + 2);
    CHECK_EQ(told.si_code, SI_USER);
}

// Its own is blocked in a handler, and so is what sa_mask names: they come when it has returned.
static void raise_both(int signal, siginfo_t* info, void* context) {
    (void)info, (void)context;
    const int before = seen[SIGUSR2];
    seen[signal]++;
    if (++depth > deepest) deepest = depth;
    if (seen[signal] == 1) CHECK_EQ(raise(signal), 0);
    CHECK_EQ(raise(SIGUSR2), 0);
    CHECK_EQ(seen[SIGUSR2], before);
    CHECK(is_pending(SIGUSR2));
    depth--;
}

static void blocked_in_handler(void) {
    memset((void*)seen, 0, sizeof seen);
    set(SIGUSR2, count, 0, 0);
    set(SIGHUP, raise_both, 0, SIGUSR2);
    CHECK_EQ(raise(SIGHUP), 0);
    CHECK_EQ(seen[SIGHUP], 2);
    CHECK_EQ(deepest, 1);
    CHECK(seen[SIGUSR2] == 1 || seen[SIGUSR2] == 2);  // they merge, or one came between
    CHECK(!blocks(SIGHUP) && !blocks(SIGUSR2));
}

static void again(int signal, siginfo_t* info, void* context) {
    (void)info, (void)context;
    seen[signal]++;
    if (++depth > deepest) deepest = depth;
    if (depth < 3) CHECK_EQ(raise(signal), 0);
    depth--;
}

static void flags_of_actions(void) {
    deepest = depth = 0;
    set(SIGUSR1, again, SA_NODEFER, 0);
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(deepest, 3);
    for (int i = 0; i < 3; i++) {
        seen[SIGURG] = 0;
        set(SIGURG, count, SA_RESETHAND, 0);
        CHECK_EQ(raise(SIGURG), 0);
        CHECK_EQ(raise(SIGURG), 0);  // ignored by default
        CHECK_EQ(seen[SIGURG], 1);
        struct sigaction now;
        CHECK_EQ(sigaction(SIGURG, NULL, &now), 0);
        CHECK(now.sa_handler == SIG_DFL);
    }
    set(SIGUSR1, count, 0, 0);
    seen[SIGUSR1] = 0;
    signal(SIGUSR1, SIG_IGN);
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(seen[SIGUSR1], 0);
}

static void block_more(int signal, siginfo_t* info, void* context) {
    (void)info;
    ucontext_t* interrupted = context;
    seen[signal]++;
    sigaddset(&interrupted->uc_sigmask, SIGUSR2);
}

static void jump(int signal, siginfo_t* info, void* context) {
    (void)info, (void)context;
    seen[signal]++;
    siglongjmp(way_out, signal);
}

static void masks_after_handlers(void) {
    memset((void*)seen, 0, sizeof seen);
    sigset_t usr2;
    sigemptyset(&usr2);
    sigaddset(&usr2, SIGUSR2);
    set(SIGUSR1, block_more, 0, 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(raise(SIGUSR1), 0);
        CHECK(blocks(SIGUSR2));
        CHECK_EQ(raise(SIGUSR2), 0);
        CHECK_EQ(seen[SIGUSR2], i);
        CHECK(is_pending(SIGUSR2));
        CHECK_EQ(sigprocmask(SIG_UNBLOCK, &usr2, NULL), 0);
        CHECK_EQ(seen[SIGUSR2], i + 1);
    }
    set(SIGUSR1, jump, 0, SIGUSR2);
    for (int i = 0; i < 3; i++) {
        if (sigsetjmp(way_out, 1) == 0) {  // restores the mask
            raise(SIGUSR1);
            CHECK(0);
        }
        CHECK(!blocks(SIGUSR1) && !blocks(SIGUSR2));
        if (sigsetjmp(way_out, 0) == 0) {  // keeps that of the handler
            raise(SIGUSR1);
            CHECK(0);
        }
        CHECK(blocks(SIGUSR1) && blocks(SIGUSR2));
        const int before = seen[SIGUSR2];
        CHECK_EQ(kill(getpid(), SIGUSR2), 0);
        CHECK(is_pending(SIGUSR2));
        CHECK_EQ(seen[SIGUSR2], before);
        sigset_t none;
        sigemptyset(&none);
        CHECK_EQ(sigprocmask(SIG_SETMASK, &none, NULL), 0);
        CHECK_EQ(seen[SIGUSR2], before + 1);
    }
}

// Another process sends what the handler blocks while it runs, and says so.
static int child_ends[2], parent_ends[2];

static void wait_for_sender(int signal, siginfo_t* info, void* context) {
    (void)info, (void)context;
    const int before = seen[SIGUSR2];
    seen[signal]++;
    char byte = 1;
    CHECK_EQ(write(child_ends[1], &byte, 1), 1);
    CHECK_EQ(read(parent_ends[0], &byte, 1), 1);
    CHECK_EQ(seen[SIGUSR2], before);
}

static void sent_meanwhile(void) {
    memset((void*)seen, 0, sizeof seen);
    set(SIGUSR1, wait_for_sender, 0, SIGUSR2);
    CHECK_EQ(pipe(child_ends), 0);
    CHECK_EQ(pipe(parent_ends), 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    for (char byte; child == 0;) {
        close(child_ends[1]);
        if (read(child_ends[0], &byte, 1) != 1) _exit(0);
        CHECK_EQ(kill(getppid(), SIGUSR2), 0);
        CHECK_EQ(write(parent_ends[1], &byte, 1), 1);
    }
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(raise(SIGUSR1), 0);
        CHECK_EQ(seen[SIGUSR1], i + 1);
        CHECK_EQ(seen[SIGUSR2], i + 1);
    }
    close(child_ends[1]);
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

// Signals from elsewhere come at the same time.
static void beside_timer(void) {
    memset((void*)seen, 0, sizeof seen);
    set(SIGUSR1, count, 0, 0);
    set(SIGALRM, count, SA_RESTART, 0);
    const struct itimerval often = {{0, 2000}, {0, 2000}}, never = {0};
    CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
    for (int i = 0; i < 5 * rounds || seen[SIGALRM] < 5; i++) {
        CHECK_EQ(raise(SIGUSR1), 0);
        CHECK_EQ(seen[SIGUSR1], i + 1);
    }
    CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
}

static pthread_t handled_by[rounds * threads];
static volatile sig_atomic_t handled_count;

static void note_thread(int signal, siginfo_t* info, void* context) {
    (void)signal, (void)info, (void)context;
    handled_by[__atomic_fetch_add(&handled_count, 1, __ATOMIC_RELAXED)] = pthread_self();
}

static void* raise_often(void* count) {
    for (int i = 0; i < rounds; i++) {
        CHECK_EQ(i % 2 ? raise(SIGUSR1) : pthread_kill(pthread_self(), SIGUSR1), 0);
        int mine = 0;
        for (int k = 0; k < rounds * threads; k++) mine += handled_by[k] == pthread_self();
        CHECK_EQ(mine, i + 1);
    }
    return count;
}

static void in_threads(void) {
    set(SIGUSR1, note_thread, 0, 0);
    pthread_t all[threads];
    for (int i = 0; i < threads; i++) CHECK_EQ(pthread_create(&all[i], NULL, raise_often, NULL), 0);
    for (int i = 0; i < threads; i++) CHECK_EQ(pthread_join(all[i], NULL), 0);
    CHECK_EQ(handled_count, rounds * threads);
}

// As another user from now on; a child, so that nothing else is concerned.
static void as_another_user(void) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        seen[SIGUSR1] = 0;
        set(SIGUSR1, tell, 0, 0);
        for (int i = 0; i < 3; i++) CHECK_EQ(raise(SIGUSR1), 0);
        CHECK_EQ(told.si_uid, getuid());
        if (getuid() == 0) CHECK_EQ(setresuid(12345, (uid_t)-1, (uid_t)-1), 0);
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(raise(SIGUSR1), 0);
            CHECK_EQ(told.si_uid, getuid());
            CHECK_EQ(told.si_pid, getpid());
        }
        CHECK_EQ(seen[SIGUSR1], 6);
        _exit(0);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

int main(void) {
    told_of_sender();
    blocked_in_handler();
    flags_of_actions();
    masks_after_handlers();
    sent_meanwhile();
    beside_timer();
    in_threads();
    as_another_user();
    return guest_passed();
}
