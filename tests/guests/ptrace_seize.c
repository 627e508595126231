// PTRACE_SEIZE: nothing stops by itself; PTRACE_INTERRUPT, PTRACE_LISTEN, and job control.
#include "ptrace.h"

static volatile sig_atomic_t told;

static void forks(void) {
    while (!told) usleep(1000);
    pid_t child = fork();
    if (child == 0) _exit(3);
    int status = 0;
    while (waitpid(child, &status, 0) != child) continue;
    _exit(WEXITSTATUS(status) + 1);
}

static void tell(int signal) { told = signal; }

int main(void) {
    signal(SIGUSR1, tell);
    pid_t child = plain_child(wait_for_ever);
    CHECK_ERRNO(ptrace(PTRACE_SEIZE, child, 1, 0), EIO);
    CHECK_ERRNO(ptrace(PTRACE_SEIZE, child, 0, 1UL << 30), EIO);
    CHECK_EQ(ptrace(PTRACE_SEIZE, child, 0, 0), 0);
    CHECK_ERRNO(ptrace(PTRACE_SEIZE, child, 0, 0), EPERM);
    usleep(10000);
    CHECK_EQ(waitpid(child, NULL, __WALL | WNOHANG), 0);
    CHECK_ERRNO(ptrace(PTRACE_CONT, child, 0, 0), ESRCH);  // it runs
    CHECK_EQ(ptrace(PTRACE_INTERRUPT, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGTRAP, PTRACE_EVENT_STOP));
    siginfo_t info;
    CHECK_EQ(ptrace(PTRACE_GETSIGINFO, child, 0, &info), 0);
    CHECK_EQ(info.si_signo, SIGTRAP);
    CHECK_EQ(info.si_code, PTRACE_EVENT_STOP << 8 | SIGTRAP);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);

    // Job control stops it, and lets it go on.
    CHECK_EQ(kill(child, SIGSTOP), 0);
    CHECK_WAIT(child, STOPPED(SIGSTOP, 0));
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, SIGSTOP), 0);
    CHECK_WAIT(child, STOPPED(SIGSTOP, PTRACE_EVENT_STOP));
    CHECK_EQ(ptrace(PTRACE_LISTEN, child, 0, 0), 0);
    CHECK_ERRNO(ptrace(PTRACE_CONT, child, 0, 0), ESRCH);
    usleep(10000);
    CHECK_EQ(waitpid(child, NULL, __WALL | WNOHANG), 0);
    CHECK_EQ(kill(child, SIGCONT), 0);
    CHECK_WAIT(child, STOPPED(SIGTRAP, PTRACE_EVENT_STOP));
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGCONT, 0));
    CHECK_ERRNO(ptrace(PTRACE_LISTEN, child, 0, 0), EIO);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, SIGCONT), 0);
    end_child(child);

    // One that is stopped already.
    child = plain_child(wait_for_ever);
    CHECK_EQ(kill(child, SIGSTOP), 0);
    CHECK_EQ(waitid(P_PID, child, &info, WSTOPPED), 0);
    CHECK_EQ(info.si_code, CLD_STOPPED);
    CHECK_EQ(ptrace(PTRACE_SEIZE, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGSTOP, PTRACE_EVENT_STOP));
    end_child(child);

    // Children of a seized one begin with an event.
    child = plain_child(forks);
    CHECK_EQ(ptrace(PTRACE_SEIZE, child, 0, PTRACE_O_TRACEFORK), 0);
    CHECK_EQ(kill(child, SIGUSR1), 0);
    CHECK_WAIT(child, STOPPED(SIGUSR1, 0));
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, SIGUSR1), 0);
    CHECK_WAIT(child, STOPPED(SIGTRAP, PTRACE_EVENT_FORK));
    unsigned long message = 0;
    CHECK_EQ(ptrace(PTRACE_GETEVENTMSG, child, 0, &message), 0);
    CHECK_WAIT((pid_t)message, STOPPED(SIGTRAP, PTRACE_EVENT_STOP));
    CHECK_EQ(ptrace(PTRACE_CONT, (pid_t)message, 0, 0), 0);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT((pid_t)message, 3 << 8);
    CHECK_WAIT(child, STOPPED(SIGCHLD, 0));
    CHECK_EQ(ptrace(PTRACE_DETACH, child, 0, SIGCHLD), 0);
    CHECK_WAIT(child, 4 << 8);
    return guest_passed();
}
