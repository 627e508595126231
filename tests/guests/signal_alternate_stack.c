// sigaltstack: not changed while it is in use, set again when a handler returns, disarmed in the
// handlers of SS_AUTODISARM; and what a child has of it.
#include <signal.h>
#include <sys/wait.h>

#include "guest.h"

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

enum { SIZE = 65536, ROUNDS = 60 };
static char first[SIZE], second[SIZE];
static int handled;

static void set(char* stack, unsigned flags) {
    stack_t wanted = {.ss_sp = stack, .ss_size = SIZE, .ss_flags = (int)flags};
    CHECK_EQ(sigaltstack(&wanted, NULL), 0);
}

static void expect(char* stack, unsigned flags) {
    stack_t now;
    CHECK_EQ(sigaltstack(NULL, &now), 0);
    CHECK_EQ((unsigned)now.ss_flags, flags);
    CHECK(now.ss_sp == stack);
    CHECK_EQ(now.ss_size, stack ? SIZE : 0);
}

static void expect_in_child(char* stack, unsigned flags) {
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 5; i++) expect(stack, flags);
        _exit(0);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

static int runs_on(const char* stack) {
    char here;
    return &here >= stack && &here < stack + SIZE;
}

static void handle(int number, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    CHECK_EQ(sigaction(number, &action, NULL), 0);
}

static void change_in_use(int number) {
    CHECK(runs_on(first));
    expect(first, SS_ONSTACK);
    stack_t wanted = {.ss_sp = second, .ss_size = SIZE};
    CHECK_ERRNO(sigaltstack(&wanted, NULL), EPERM);
    wanted.ss_flags = SS_DISABLE;
    CHECK_ERRNO(sigaltstack(&wanted, NULL), EPERM);
    expect(first, SS_ONSTACK);
    if (handled++ % 2 == 0) raise(SIGUSR2);
}

static void change(int number) {
    set(second, 0);
    handled++;
}

static void on_first(int number) {
    CHECK(runs_on(first));
    handled++;
}

static void disarmed(int number) {
    CHECK(runs_on(first));
    for (int i = 0; i < 3; i++) expect(NULL, SS_DISABLE);
    if (handled++ % 20 == 0) expect_in_child(NULL, SS_DISABLE);
}

int main(void) {
    set(first, 0);
    handle(SIGUSR1, change_in_use, SA_ONSTACK);
    handle(SIGUSR2, change_in_use, SA_ONSTACK);
    for (int round = 0; round < ROUNDS; round++) {
        raise(SIGUSR1);
        expect(first, 0);
    }
    expect_in_child(first, 0);

    handled = 0;
    handle(SIGUSR1, change, 0);
    handle(SIGUSR2, on_first, SA_ONSTACK);
    for (int round = 0; round < ROUNDS; round++) {
        raise(SIGUSR1);
        expect(first, 0);
        raise(SIGUSR2);
        if (round % 20 == 0) expect_in_child(first, 0);
    }
    CHECK_EQ(handled, 2 * ROUNDS);

    set(first, SS_AUTODISARM);
    handle(SIGUSR1, disarmed, SA_ONSTACK);
    for (int round = 0; round < ROUNDS; round++) {
        raise(SIGUSR1);
        expect(first, SS_AUTODISARM);
    }
    expect_in_child(first, SS_AUTODISARM);
    return guest_passed();
}
