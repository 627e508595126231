// Job control of a tracee that has not been seized: a group-stop looks like a signal without one.
#include "ptrace.h"

int main(void) {
    pid_t child = traced_child(wait_for_ever);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_EQ(kill(child, SIGSTOP), 0);
    CHECK_WAIT(child, STOPPED(SIGSTOP, 0));
    siginfo_t info;
    CHECK_EQ(ptrace(PTRACE_GETSIGINFO, child, 0, &info), 0);
    CHECK_EQ(info.si_pid, getpid());
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, SIGSTOP), 0);
    CHECK_WAIT(child, STOPPED(SIGSTOP, 0));
    CHECK_ERRNO(ptrace(PTRACE_GETSIGINFO, child, 0, &info), EINVAL);
    // It runs although its process is stopped.
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_EQ(kill(child, SIGUSR1), 0);
    CHECK_WAIT(child, STOPPED(SIGUSR1, 0));
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_EQ(kill(child, SIGCONT), 0);
    CHECK_WAIT(child, STOPPED(SIGCONT, 0));
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, SIGCONT), 0);
    CHECK_EQ(kill(child, SIGUSR2), 0);
    CHECK_WAIT(child, STOPPED(SIGUSR2, 0));
    end_child(child);
    return guest_passed();
}
