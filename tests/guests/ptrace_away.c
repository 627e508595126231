// Tracees and tracers that have computed for long enough to be somewhere else by then.
#include "ptrace.h"

enum { LONG_MS = 150, MOST_LOOKS = 200 };

static volatile unsigned long turns;
static volatile int goes_on = 1;

static void compute_for(long ms) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        for (int i = 0; i < 10000; i++) turns += 3;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

static void compute_until_told(void) {
    while (goes_on) turns += 3;
    _exit(turns % 3 == 0 ? 21 : 22);
}

static void is_traced_late(void) {
    compute_for(LONG_MS);
    CHECK_EQ(ptrace(PTRACE_TRACEME, 0, 0, 0), 0);
    raise(SIGSTOP);
    compute_for(1);
    _exit(turns % 3 == 0 ? 23 : 24);
}

static void attach_to_one_that_computes(void) {
    pid_t child = plain_child(compute_until_told);
    compute_for(LONG_MS);
    CHECK_EQ(ptrace(PTRACE_SEIZE, child, 0, 0), 0);
    CHECK_EQ(ptrace(PTRACE_INTERRUPT, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGTRAP, PTRACE_EVENT_STOP));
    struct user_regs_struct regs;
    CHECK_EQ(ptrace(PTRACE_GETREGS, child, 0, &regs), 0);
    CHECK(regs.rip != 0 && regs.rsp != 0);
    errno = 0;
    unsigned long first = ptrace(PTRACE_PEEKDATA, child, &turns, 0);
    CHECK(errno == 0 && first > 0 && first % 3 == 0);
    unsigned long second = first;
    for (int i = 0; second == first && i < MOST_LOOKS; i++) {  // until it was given a processor
        CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
        compute_for(5);
        CHECK_EQ(ptrace(PTRACE_INTERRUPT, child, 0, 0), 0);
        CHECK_WAIT(child, STOPPED(SIGTRAP, PTRACE_EVENT_STOP));
        second = ptrace(PTRACE_PEEKDATA, child, &turns, 0);
    }
    CHECK(second > first && second % 3 == 0);
    CHECK_EQ(ptrace(PTRACE_POKEDATA, child, &goes_on, 0), 0);
    CHECK_EQ(ptrace(PTRACE_DETACH, child, 0, 0), 0);
    CHECK_WAIT(child, 21 << 8);
}

static void be_asked_by_one_that_has_computed(void) {
    pid_t child = plain_child(is_traced_late);
    CHECK_WAIT(child, STOPPED(SIGSTOP, 0));
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, 23 << 8);
}

static void trace_in_a_child_that_has_computed(void) {
    pid_t tracer = fork();
    CHECK(tracer >= 0);
    if (tracer == 0) {
        compute_for(LONG_MS);
        attach_to_one_that_computes();
        _exit(25);
    }
    CHECK_WAIT(tracer, 25 << 8);
}

int main(void) {
    attach_to_one_that_computes();
    puts("attached");
    be_asked_by_one_that_has_computed();
    puts("asked");
    trace_in_a_child_that_has_computed();
    return guest_passed();
}
