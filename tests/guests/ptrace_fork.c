// Children of a tracee by fork are traced at once if the tracer wants that.
#include "ptrace.h"

static void forks(void) {
    pid_t child = fork();
    if (child == 0) _exit(11);
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    _exit(WEXITSTATUS(status) + 1);
}

static pid_t told_child(pid_t parent) {
    unsigned long message = 0;
    CHECK_EQ(ptrace(PTRACE_GETEVENTMSG, parent, 0, &message), 0);
    return (pid_t)message;
}

// The stops of both may come in either order.
static pid_t follow(void) {
    pid_t parent = traced_child(forks);
    CHECK_EQ(ptrace(PTRACE_SETOPTIONS, parent, 0, PTRACE_O_TRACEFORK), 0);
    CHECK_EQ(ptrace(PTRACE_CONT, parent, 0, 0), 0);
    CHECK_WAIT(parent, STOPPED(SIGTRAP, PTRACE_EVENT_FORK));
    pid_t child = told_child(parent);
    CHECK(child > 0);
    siginfo_t info;
    CHECK_EQ(ptrace(PTRACE_GETSIGINFO, parent, 0, &info), 0);
    CHECK_EQ(info.si_code, PTRACE_EVENT_FORK << 8 | SIGTRAP);
    CHECK_WAIT(child, STOPPED(SIGSTOP, 0));
    CHECK_EQ(ptrace(PTRACE_GETSIGINFO, child, 0, &info), 0);
    CHECK_EQ(info.si_signo, SIGSTOP);
    CHECK_EQ(info.si_code, SI_USER);
    CHECK_EQ(info.si_pid, 0);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    return parent;
}

int main(void) {
    // The tracer hears of the grandchild's end first; till then its parent does not.
    pid_t parent = follow();
    pid_t child = told_child(parent);
    CHECK_EQ(ptrace(PTRACE_CONT, parent, 0, 0), 0);
    siginfo_t info = {0};
    CHECK_EQ(waitid(P_PID, child, &info, WEXITED | WNOWAIT), 0);
    CHECK_EQ(info.si_code, CLD_EXITED);
    CHECK_EQ(info.si_status, 11);
    usleep(20000);
    CHECK_EQ(waitpid(parent, NULL, WNOHANG), 0);
    CHECK_WAIT(child, 11 << 8);
    CHECK_WAIT(parent, STOPPED(SIGCHLD, 0));
    CHECK_EQ(ptrace(PTRACE_CONT, parent, 0, SIGCHLD), 0);
    CHECK_WAIT(parent, 12 << 8);

    // Not asked for: the child runs on by itself.
    parent = traced_child(forks);
    CHECK_EQ(ptrace(PTRACE_CONT, parent, 0, 0), 0);
    CHECK_WAIT(parent, STOPPED(SIGCHLD, 0));
    CHECK_EQ(ptrace(PTRACE_CONT, parent, 0, SIGCHLD), 0);
    CHECK_WAIT(parent, 12 << 8);

    // A child that is traced without being one's own is waited for by any wait.
    parent = follow();
    child = told_child(parent);
    CHECK_EQ(ptrace(PTRACE_CONT, parent, 0, 0), 0);
    int status = 0, ends = 0;
    while (ends < 2) {
        pid_t who = waitpid(-1, &status, __WALL);
        CHECK(who == parent || who == child);
        if (WIFSTOPPED(status)) {
            CHECK_EQ(ptrace(PTRACE_CONT, who, 0, WSTOPSIG(status)), 0);
            continue;
        }
        ends++;
        CHECK_EQ(status, who == child ? 11 << 8 : 12 << 8);
        CHECK_EQ(who, ends == 1 ? child : parent);
    }
    CHECK_ERRNO(waitpid(-1, &status, __WALL), ECHILD);
    return guest_passed();
}
