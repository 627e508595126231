// Nested handlers, SA_NODEFER, SA_RESETHAND, siglongjmp out of a handler 1000 times, the mask kept.
#include <setjmp.h>
#include <signal.h>

#include "guest.h"

static volatile int depth, deepest, outer;
static sigjmp_buf escape;

static void nested(int number) {
    depth++;
    if (depth > deepest) deepest = depth;
    if (depth < 10) raise(number);
    depth--;
}

static void inner(int number) { outer = outer * 10 + 2; }
static void other(int number) {
    outer = outer * 10 + 1;
    raise(SIGUSR2);
    outer = outer * 10 + 3;
}
static void jump(int number) { siglongjmp(escape, 1); }

int main(void) {
    struct sigaction action = {.sa_handler = nested, .sa_flags = SA_NODEFER};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    raise(SIGUSR1);
    CHECK_EQ(deepest, 10);
    signal(SIGUSR1, other);
    signal(SIGUSR2, inner);
    raise(SIGUSR1);
    CHECK_EQ(outer, 123);
    outer = 0;
    action = (struct sigaction){.sa_handler = other};
    sigaddset(&action.sa_mask, SIGUSR2);
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    raise(SIGUSR1);
    CHECK_EQ(outer, 132);
    action = (struct sigaction){.sa_handler = inner, .sa_flags = SA_RESETHAND};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    raise(SIGUSR1);
    CHECK_EQ(sigaction(SIGUSR1, NULL, &action), 0);
    CHECK(action.sa_handler == SIG_DFL);
    signal(SIGUSR1, jump);
    for (volatile int i = 0; i < 1000; i++)
        if (sigsetjmp(escape, 1) == 0) {
            raise(SIGUSR1);
            CHECK(!"not reached");
        }
    sigset_t now;
    CHECK_EQ(sigprocmask(SIG_BLOCK, NULL, &now), 0);
    CHECK_EQ(sigismember(&now, SIGUSR1), 0);
    return guest_passed();
}
