// SA_RESETHAND: once the handler has begun the disposition is SIG_DFL, and nothing else of the
// action has changed; in a child, too.
#include <signal.h>
#include <sys/wait.h>

#include "guest.h"

static int handled;

static void count(int number) { handled++; }

static void check_left(void) {
    struct sigaction left;
    CHECK_EQ(sigaction(SIGUSR1, NULL, &left), 0);
    CHECK(left.sa_handler == SIG_DFL);
    CHECK_EQ(left.sa_flags & (SA_RESETHAND | SA_RESTART | SA_NODEFER), SA_RESETHAND | SA_RESTART);
    CHECK_EQ(sigismember(&left.sa_mask, SIGUSR2), 1);
    CHECK_EQ(sigismember(&left.sa_mask, SIGHUP), 0);
}

int main(void) {
    for (int round = 0; round < 60; round++) {
        struct sigaction once = {.sa_handler = count, .sa_flags = SA_RESETHAND | SA_RESTART};
        sigaddset(&once.sa_mask, SIGUSR2);
        CHECK_EQ(sigaction(SIGUSR1, &once, NULL), 0);
        raise(SIGUSR1);
        for (int i = 0; i < 5; i++) check_left();
    }
    CHECK_EQ(handled, 60);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 20; i++) check_left();
        raise(SIGUSR1);
        _exit(1);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
    return guest_passed();
}
