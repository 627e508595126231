// The main stack grows by 6 MiB of recursion; big frames and alloca work; overflow is caught.
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>

#include "guest.h"

static sigjmp_buf escape;
static char altstack[65536];

static uint64_t recurse(int depth) {
    volatile char frame[1000];
    frame[0] = (char)depth;
    uint64_t below = depth > 0 ? recurse(depth - 1) : 0;
    return below + (uint64_t)(unsigned char)frame[0];
}

static uint64_t endless(uint64_t depth) {
    volatile char frame[4000];
    frame[depth % 4000] = 1;
    return endless(depth + 1) + (uint64_t)frame[0];
}

static void on_segv(int number) { siglongjmp(escape, number); }

int main(void) {
    printf("%llu\n", (unsigned long long)recurse(6000));
    char* big = alloca(1 << 20);
    guest_fill(big, 1 << 20, 1);
    CHECK(guest_is_filled(big, 1 << 20, 1));
    stack_t stack = {.ss_sp = altstack, .ss_size = sizeof altstack};
    CHECK_EQ(sigaltstack(&stack, NULL), 0);
    struct sigaction action = {.sa_handler = on_segv, .sa_flags = SA_ONSTACK};
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
    for (int i = 0; i < 3; i++)
        if (sigsetjmp(escape, 1) == 0) {
            endless(0);
            CHECK(!"not reached");
        }
    return guest_passed();
}
