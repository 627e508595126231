// Realtime signals are queued and come in order with their values, standard ones coalesce while
// they are blocked; handlers nest as their masks say. Waiting takes them in the same order.
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "guest.h"

enum { ROUNDS = 8, EACH = 5, MANY = 60 };

static struct { int number, value, code, pid; } seen[64];
static volatile int count;

static void note(int number, siginfo_t* info, void* unused) {
    seen[count].number = number;
    seen[count].value = info->si_value.sival_int;
    seen[count].code = info->si_code;
    seen[count].pid = info->si_pid;
    count++;
}

static void handle(int number, void (*handler)(int, siginfo_t*, void*), int flags, int block_all) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    if (block_all) sigfillset(&action.sa_mask);
    CHECK_EQ(sigaction(number, &action, NULL), 0);
}

static sigset_t set_of(int a, int b, int c, int d) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, a), sigaddset(&set, b), sigaddset(&set, c), sigaddset(&set, d);
    return set;
}

static void send(int number, int value) {
    union sigval with = {.sival_int = value};
    CHECK_EQ(sigqueue(getpid(), number, with), 0);
}

static void expect(int at, int number, int value, int code) {
    CHECK_EQ(seen[at].number, number);
    if (code == SI_QUEUE) CHECK_EQ(seen[at].value, value);
    CHECK_EQ(seen[at].code, code);
    CHECK_EQ(seen[at].pid, getpid());
}

// The kernel delivers the lowest number first; with all blocked in the handler that is what we see.
static void queue_and_coalesce(void) {
    int low = SIGRTMIN + 1, high = SIGRTMIN + 3;
    sigset_t set = set_of(low, high, SIGUSR1, SIGUSR2), pending, old;
    CHECK_EQ(sigprocmask(SIG_BLOCK, &set, &old), 0);
    count = 0;
    for (int i = 0; i < EACH; i++) {
        send(high, i);
        CHECK_EQ(kill(getpid(), SIGUSR2), 0);
        send(low, 100 + i);
        CHECK_EQ(raise(SIGUSR1), 0);
    }
    CHECK_EQ(count, 0);
    CHECK_EQ(sigpending(&pending), 0);
    CHECK(sigismember(&pending, low) && sigismember(&pending, high));
    CHECK(sigismember(&pending, SIGUSR1) && sigismember(&pending, SIGUSR2));
    CHECK_EQ(sigprocmask(SIG_SETMASK, &old, NULL), 0);
    CHECK_EQ(count, 2 + 2 * EACH);
    expect(0, SIGUSR1, 0, SI_TKILL);
    expect(1, SIGUSR2, 0, SI_USER);
    for (int i = 0; i < EACH; i++) expect(2 + i, low, 100 + i, SI_QUEUE);
    for (int i = 0; i < EACH; i++) expect(2 + EACH + i, high, i, SI_QUEUE);
    CHECK_EQ(sigpending(&pending), 0);
    CHECK(!sigismember(&pending, low) && !sigismember(&pending, SIGUSR1));
}

static void wait_in_order(void) {
    int low = SIGRTMIN + 1, high = SIGRTMIN + 3;
    sigset_t set = set_of(low, high, SIGUSR1, SIGUSR2), old;
    CHECK_EQ(sigprocmask(SIG_BLOCK, &set, &old), 0);
    count = 0;
    for (int i = 0; i < EACH; i++) send(high, i), send(low, i), send(SIGUSR1, i);
    struct timespec no_time = {0, 0};
    siginfo_t info;
    CHECK_EQ(sigtimedwait(&set, &info, &no_time), SIGUSR1);
    CHECK_EQ(info.si_value.sival_int, 0);
    for (int i = 0; i < 2 * EACH; i++) {
        CHECK_EQ(sigtimedwait(&set, &info, &no_time), i < EACH ? low : high);
        CHECK_EQ(info.si_value.sival_int, i % EACH);
    }
    CHECK_ERRNO(sigtimedwait(&set, &info, &no_time), EAGAIN);
    CHECK_EQ(sigprocmask(SIG_SETMASK, &old, NULL), 0);
    CHECK_EQ(count, 0);
}

static volatile int depth, deepest, inner, inner_at;

static void on_inner(int number, siginfo_t* info, void* unused) {
    inner++;
    inner_at = depth;
}

// Its own signal is blocked, others are not.
static void on_outer(int number, siginfo_t* info, void* unused) {
    sigset_t mask, pending;
    if (++depth > deepest) deepest = depth;
    int before = inner;
    CHECK_EQ(raise(SIGUSR2), 0);
    CHECK_EQ(inner, before + 1);
    CHECK_EQ(inner_at, depth);
    CHECK_EQ(sigprocmask(SIG_BLOCK, NULL, &mask), 0);
    CHECK(sigismember(&mask, SIGUSR1) && !sigismember(&mask, SIGUSR2));
    if (before < 2) {
        CHECK_EQ(raise(SIGUSR1), 0);
        CHECK_EQ(raise(SIGUSR1), 0);
        CHECK_EQ(sigpending(&pending), 0);
        CHECK(sigismember(&pending, SIGUSR1));
    }
    depth--;
}

static void nest(void) {
    handle(SIGUSR1, on_outer, 0, 0);
    handle(SIGUSR2, on_inner, 0, 0);
    deepest = inner = 0;
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(inner, 3);
    CHECK_EQ(deepest, 1);
    handle(SIGUSR1, note, 0, 1);
    handle(SIGUSR2, note, 0, 1);
}

static void on_again(int number, siginfo_t* info, void* unused) {
    if (++depth > deepest) deepest = depth;
    if (deepest < 4) CHECK_EQ(raise(SIGUSR1), 0);
    depth--;
}

static void nest_without_block(void) {
    handle(SIGUSR1, on_again, SA_NODEFER, 0);
    deepest = 0;
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(deepest, 4);
    CHECK_EQ(depth, 0);
    handle(SIGUSR1, note, 0, 1);
}

static volatile int next_value;

static void on_next(int number, siginfo_t* info, void* unused) {
    CHECK_EQ(info->si_value.sival_int, next_value);
    next_value++;
}

static void* send_many(void* receiver) {
    for (int i = 0; i < MANY; i++) {
        union sigval with = {.sival_int = i};
        CHECK_EQ(pthread_sigqueue(*(pthread_t*)receiver, SIGRTMIN + 5, with), 0);
    }
    return NULL;
}

// While the receiver runs, calls, and calls what blocks.
static void come_in_order(void) {
    handle(SIGRTMIN + 5, on_next, SA_RESTART, 1);
    sigset_t set = set_of(SIGRTMIN + 5, SIGRTMIN + 5, SIGRTMIN + 5, SIGRTMIN + 5), old;
    sigset_t all;
    sigfillset(&all);
    pthread_t self = pthread_self(), sender;
    next_value = 0;
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &all, &old), 0);
    CHECK_EQ(pthread_create(&sender, NULL, send_many, &self), 0);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
    for (int i = 0; i < 50; i++) {
        struct timespec instant = {0, 20000};
        if (i % 2) nanosleep(&instant, NULL);
        if (i % 7 == 0) CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
        getppid();
        if (i % 7 == 3) CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
    }
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    CHECK_EQ(pthread_join(sender, NULL), 0);
    while (next_value < MANY) {
        sigset_t open = old;
        sigdelset(&open, SIGRTMIN + 5);
        CHECK_ERRNO(sigsuspend(&open), EINTR);
    }
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
    CHECK_EQ(next_value, MANY);
}

int main(void) {
    int queued[] = {SIGRTMIN + 1, SIGRTMIN + 3, SIGUSR1, SIGUSR2};
    for (int i = 0; i < 4; i++) handle(queued[i], note, 0, 1);
    for (int round = 0; round < ROUNDS; round++) {
        queue_and_coalesce();
        wait_in_order();
        nest();
        nest_without_block();
        come_in_order();
    }
    return guest_passed();
}
