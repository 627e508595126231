// A tracer gets SIGCHLD for each stop of its tracees.
#include <poll.h>
#include <sys/signalfd.h>

#include "ptrace.h"

static volatile int count;
static siginfo_t last;

static void on_child(int signal, siginfo_t* info, void* context) {
    (void)signal;
    (void)context;
    last = *info;
    count++;
}

static void body(void) {
    raise(SIGUSR1);
    _exit(6);
}

int main(void) {
    sigset_t chld, none;
    sigemptyset(&none);
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &chld, NULL), 0);
    struct sigaction action = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO};
    CHECK_EQ(sigaction(SIGCHLD, &action, NULL), 0);
    pid_t child = traced_child(body);
    while (count == 0) sigsuspend(&none);
    CHECK_EQ(last.si_pid, child);
    CHECK_EQ(last.si_code, CLD_TRAPPED);
    CHECK_EQ(last.si_status, SIGSTOP);
    CHECK_EQ(last.si_uid, getuid());
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    while (count < 2) sigsuspend(&none);
    CHECK_EQ(last.si_status, SIGUSR1);
    CHECK_WAIT(child, STOPPED(SIGUSR1, 0));
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    while (count < 3) sigsuspend(&none);
    CHECK_EQ(last.si_code, CLD_EXITED);
    CHECK_EQ(last.si_status, 6);
    CHECK_WAIT(child, 6 << 8);

    // It is also seen by who polls for it.
    int fd = signalfd(-1, &chld, SFD_CLOEXEC);
    CHECK(fd >= 0);
    child = traced_child(body);
    struct signalfd_siginfo info;
    CHECK_EQ(read(fd, &info, sizeof info), sizeof info);
    CHECK_EQ(info.ssi_pid, (unsigned)child);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    struct pollfd waits = {.fd = fd, .events = POLLIN};
    CHECK_EQ(poll(&waits, 1, 10000), 1);
    CHECK_EQ(read(fd, &info, sizeof info), sizeof info);
    CHECK_EQ(info.ssi_pid, (unsigned)child);
    CHECK_WAIT(child, STOPPED(SIGUSR1, 0));
    end_child(child);

    // A wait that is under way returns, and is not interrupted.
    CHECK_EQ(sigprocmask(SIG_UNBLOCK, &chld, NULL), 0);
    child = traced_child(body);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGUSR1, 0));
    end_child(child);
    return guest_passed();
}
