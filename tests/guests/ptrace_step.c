// One instruction at a time, or to the next branch.
#include "ptrace.h"

extern char first[], second[], third[], last[];

static void steps(void) {
    __asm__ volatile(
        "int3; first: xor %%eax, %%eax; second: inc %%eax; third: inc %%eax; last: nop" ::
            : "rax");
    _exit(9);
}

static unsigned long place(pid_t child) {
    struct user_regs_struct regs;
    CHECK_EQ(ptrace(PTRACE_GETREGS, child, 0, &regs), 0);
    return regs.rip;
}

static void gets_signal(void) {
    raise(SIGUSR1);
    _exit(0);
}

static volatile int handled;
static void handler(int signal) { handled = signal; }

int main(void) {
    pid_t child = traced_child(steps);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGTRAP, 0));
    char* places[] = {first, second, third, last};
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(place(child), (unsigned long)places[i]);
        CHECK_EQ(ptrace(PTRACE_SINGLESTEP, child, 0, 0), 0);
        CHECK_WAIT(child, STOPPED(SIGTRAP, 0));
        siginfo_t info;
        CHECK_EQ(ptrace(PTRACE_GETSIGINFO, child, 0, &info), 0);
        CHECK_EQ(info.si_code, TRAP_TRACE);
        CHECK_EQ((unsigned long)info.si_addr, place(child));
    }
    // Over calls, too, to its end.
    int status = 0;
    long count = 0;
    for (; count < 100000; count++) {
        CHECK_EQ(ptrace(PTRACE_SINGLESTEP, child, 0, 0), 0);
        CHECK_EQ(waitpid(child, &status, 0), child);
        if (WIFEXITED(status)) break;
        CHECK_EQ(status, STOPPED(SIGTRAP, 0));
    }
    CHECK_EQ(status, 9 << 8);
    CHECK(count > 2);

    // A step with a signal ends at the handler's first instruction.
    signal(SIGUSR1, handler);
    child = traced_child(gets_signal);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGUSR1, 0));
    CHECK_EQ(ptrace(PTRACE_SINGLESTEP, child, 0, SIGUSR1), 0);
    CHECK_WAIT(child, STOPPED(SIGTRAP, 0));
    CHECK_EQ(place(child), (unsigned long)handler);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, 0);
    return guest_passed();
}
