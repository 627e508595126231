// PTRACE_ATTACH and PTRACE_DETACH, and who may not be traced.
#include "ptrace.h"

static void sleeps(void) {
    struct timespec time = {0, 300000000};
    while (nanosleep(&time, &time) != 0) continue;
    _exit(8);
}

int main(void) {
    pid_t child = plain_child(sleeps);
    CHECK_EQ(ptrace(PTRACE_ATTACH, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGSTOP, 0));
    siginfo_t info;
    CHECK_EQ(ptrace(PTRACE_GETSIGINFO, child, 0, &info), 0);
    CHECK_EQ(info.si_signo, SIGSTOP);
    CHECK_EQ(info.si_code, SI_KERNEL);
    CHECK_ERRNO(ptrace(PTRACE_ATTACH, child, 0, 0), EPERM);
    CHECK_ERRNO(ptrace(PTRACE_INTERRUPT, child, 0, 0), EIO);
    CHECK_ERRNO(ptrace(PTRACE_LISTEN, child, 0, 0), EIO);
    CHECK_ERRNO(ptrace(PTRACE_DETACH, child, 0, 65), EIO);
    CHECK_ERRNO(ptrace(PTRACE_CONT, child, 0, 65), EIO);
    CHECK_ERRNO(ptrace(PTRACE_SETOPTIONS, child, 0, 1UL << 30), EINVAL);
    CHECK_ERRNO(ptrace(0x7777, child, 0, 0), EIO);
    CHECK_EQ(ptrace(PTRACE_DETACH, child, 0, 0), 0);
    CHECK_ERRNO(ptrace(PTRACE_CONT, child, 0, 0), ESRCH);
    CHECK_WAIT(child, 8 << 8);

    // Again and again.
    child = plain_child(wait_for_ever);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(ptrace(PTRACE_ATTACH, child, 0, 0), 0);
        CHECK_WAIT(child, STOPPED(SIGSTOP, 0));
        struct user_regs_struct regs;
        CHECK_EQ(ptrace(PTRACE_GETREGS, child, 0, &regs), 0);
        CHECK_EQ(ptrace(PTRACE_DETACH, child, 0, 0), 0);
    }
    // A signal at the end of tracing.
    CHECK_EQ(ptrace(PTRACE_ATTACH, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGSTOP, 0));
    CHECK_EQ(ptrace(PTRACE_DETACH, child, 0, SIGTERM), 0);
    CHECK_WAIT(child, SIGTERM);

    // One that job control has stopped.
    child = plain_child(wait_for_ever);
    CHECK_EQ(kill(child, SIGSTOP), 0);
    CHECK_EQ(waitid(P_PID, child, &info, WSTOPPED), 0);
    CHECK_EQ(ptrace(PTRACE_ATTACH, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGSTOP, 0));
    end_child(child);

    CHECK_ERRNO(ptrace(PTRACE_ATTACH, getpid(), 0, 0), EPERM);
    CHECK_ERRNO(ptrace(PTRACE_ATTACH, child, 0, 0), ESRCH);
    CHECK_ERRNO(ptrace(PTRACE_CONT, child, 0, 0), ESRCH);
    CHECK_ERRNO(ptrace(PTRACE_CONT, getppid(), 0, 0), ESRCH);
    CHECK_ERRNO(ptrace(PTRACE_GETREGS, 0, 0, 0), ESRCH);
    return guest_passed();
}
