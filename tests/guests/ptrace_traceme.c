// The simplest tracer: a child asks to be traced, stops before its program begins, and is resumed.
#include "ptrace.h"

static void nothing(void) {}

static void exits_with_7(void) { _exit(7); }

static void runs_true(void) {
    execl("/bin/true", "true", (char*)NULL);
    _exit(99);
}

static void twice(void) {
    CHECK_ERRNO(ptrace(PTRACE_TRACEME, 0, 0, 0), EPERM);
    _exit(3);
}

int main(void) {
    pid_t child = traced_child(nothing);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, 0);

    child = traced_child(exits_with_7);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, 7 << 8);

    // A program of its own: SIGTRAP before its first instruction.
    child = traced_child(runs_true);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGTRAP, 0));
    siginfo_t info;
    CHECK_EQ(ptrace(PTRACE_GETSIGINFO, child, 0, &info), 0);
    CHECK_EQ(info.si_signo, SIGTRAP);
    CHECK_EQ(info.si_code, SI_USER);
    CHECK_EQ(info.si_pid, child);
    struct user_regs_struct regs;
    CHECK_EQ(ptrace(PTRACE_GETREGS, child, 0, &regs), 0);
    CHECK(regs.rip != 0 && regs.rsp != 0);
    CHECK_EQ(regs.rax, 0);
    errno = 0;
    long word = ptrace(PTRACE_PEEKTEXT, child, regs.rip, 0);
    CHECK(errno == 0 && word != 0);
    CHECK_EQ(ptrace(PTRACE_PEEKDATA, child, regs.rsp, 0), 1);  // argc
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, 0);

    child = traced_child(twice);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, 3 << 8);

    // What it is sent ends it only if the tracer lets it.
    child = traced_child(wait_for_ever);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_EQ(kill(child, SIGTERM), 0);
    CHECK_WAIT(child, STOPPED(SIGTERM, 0));
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_EQ(kill(child, SIGUSR1), 0);
    CHECK_WAIT(child, STOPPED(SIGUSR1, 0));
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, SIGUSR1), 0);
    CHECK_WAIT(child, SIGUSR1);
    return guest_passed();
}
