// Programs that a tracee executes.
#include "ptrace.h"

static void runs_true(void) {
    execl("/nowhere/true", "true", (char*)NULL);
    execl("/bin/sh", "sh", "-c", "exec /bin/false", (char*)NULL);
    _exit(99);
}

int main(void) {
    pid_t child = traced_child(runs_true);
    CHECK_EQ(ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACEEXEC), 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
        CHECK_WAIT(child, STOPPED(SIGTRAP, PTRACE_EVENT_EXEC));
        unsigned long message = 0;
        CHECK_EQ(ptrace(PTRACE_GETEVENTMSG, child, 0, &message), 0);
        CHECK_EQ(message, child);
        siginfo_t info;
        CHECK_EQ(ptrace(PTRACE_GETSIGINFO, child, 0, &info), 0);
        CHECK_EQ(info.si_code, PTRACE_EVENT_EXEC << 8 | SIGTRAP);
        struct user_regs_struct regs;
        CHECK_EQ(ptrace(PTRACE_GETREGS, child, 0, &regs), 0);
        CHECK_EQ(regs.orig_rax, SYS_execve);
    }
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, 1 << 8);

    // With calls: the event lies between the two stops of execve.
    child = traced_child(runs_true);
    CHECK_EQ(ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD), 0);
    int stops_of_exec = 0, status = 0;
    for (;;) {
        CHECK_EQ(ptrace(PTRACE_SYSCALL, child, 0, 0), 0);
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFSTOPPED(status));
        struct user_regs_struct regs;
        CHECK_EQ(ptrace(PTRACE_GETREGS, child, 0, &regs), 0);
        if (regs.orig_rax == SYS_execve) stops_of_exec++;
        if (status >> 16 == PTRACE_EVENT_EXEC) break;
    }
    CHECK_EQ(stops_of_exec, 4);
    CHECK_EQ(ptrace(PTRACE_SYSCALL, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGTRAP | 0x80, 0));
    CHECK_EQ(ptrace(PTRACE_DETACH, child, 0, 0), 0);
    CHECK_WAIT(child, 1 << 8);
    return guest_passed();
}
