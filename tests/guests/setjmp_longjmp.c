// setjmp/longjmp over many frames, coroutines with makecontext and swapcontext on own stacks.
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "guest.h"

static jmp_buf back;
static ucontext_t main_context, contexts[3];
static int trace[100], traced;

static void deep(int depth) {
    volatile char frame[200];
    frame[0] = (char)depth;
    if (depth == 0) longjmp(back, 7);
    deep(depth - 1);
    frame[1] = frame[0];
}

static void coroutine(int self) {
    for (int i = 0; i < 10; i++) {
        trace[traced++] = self * 100 + i;
        swapcontext(&contexts[self], &contexts[(self + 1) % 3]);
    }
}

int main(void) {
    volatile int jumps = 0;
    int value = setjmp(back);
    CHECK(value == 0 || value == 7);
    if (++jumps <= 1000) deep(jumps % 50);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(getcontext(&contexts[i]), 0);
        contexts[i].uc_stack.ss_sp =
            mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        contexts[i].uc_stack.ss_size = 65536;
        contexts[i].uc_link = &main_context;
        makecontext(&contexts[i], (void (*)(void))coroutine, 1, i);
    }
    CHECK_EQ(swapcontext(&main_context, &contexts[0]), 0);
    CHECK_EQ(traced, 30);
    for (int i = 0; i < traced; i++) CHECK_EQ(trace[i], i % 3 * 100 + i / 3);
    return guest_passed();
}
