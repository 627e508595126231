// wait4 and waitid of a tracer: its tracees' stops, and its other children's news.
#include <poll.h>
#include <sys/resource.h>

#include "ptrace.h"

static void stops_often(void) {
    for (int i = 0; i < 3; i++) raise(SIGUSR1);
    _exit(2);
}

static void exits_late(void) {
    usleep(50000);
    _exit(4);
}

static volatile sig_atomic_t alarms;
static void on_alarm(int signal) {
    (void)signal;
    alarms++;
}

static void with_wait4(void) {
    pid_t child = traced_child(stops_often);
    int status = 0;
    CHECK_EQ(waitpid(child, &status, WNOHANG), 0);  // told before, and not again
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    struct rusage used;
    memset(&used, 0xff, sizeof used);
    CHECK_EQ(wait4(child, &status, __WALL, &used), child);
    CHECK_EQ(status, STOPPED(SIGUSR1, 0));
    CHECK(used.ru_utime.tv_sec >= 0 && used.ru_utime.tv_sec < 60);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_EQ(waitpid(-1, NULL, 0), child);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_EQ(waitpid(0, &status, WUNTRACED), child);  // of its process group
    CHECK_EQ(status, STOPPED(SIGUSR1, 0));
    CHECK_ERRNO(waitpid(-(child + 1), &status, 0), ECHILD);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, 2 << 8);
    CHECK_ERRNO(waitpid(child, &status, 0), ECHILD);
}

static void with_waitid(void) {
    pid_t child = traced_child(stops_often);
    siginfo_t info = {0};
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_EQ(waitid(P_PID, child, &info, WSTOPPED | WNOWAIT), 0);
    CHECK_EQ(info.si_pid, child);
    CHECK_EQ(info.si_uid, getuid());
    CHECK_EQ(info.si_signo, SIGCHLD);
    CHECK_EQ(info.si_code, CLD_TRAPPED);
    CHECK_EQ(info.si_status, SIGUSR1);
    memset(&info, 0, sizeof info);
    CHECK_EQ(waitid(P_ALL, 0, &info, WSTOPPED | WEXITED), 0);
    CHECK_EQ(info.si_pid, child);
    info.si_pid = 1;
    CHECK_EQ(waitid(P_ALL, 0, &info, WSTOPPED | WEXITED | WNOHANG), 0);
    CHECK_EQ(info.si_pid, 0);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_EQ(waitid(P_PGID, getpgrp(), &info, WSTOPPED), 0);
    CHECK_EQ(info.si_status, SIGUSR1);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    int fd = (int)syscall(SYS_pidfd_open, child, 0);
    CHECK(fd >= 0);
    CHECK_EQ(waitid(P_PIDFD, fd, &info, WSTOPPED), 0);
    CHECK_EQ(info.si_status, SIGUSR1);
    CHECK_ERRNO(waitid(P_ALL, 0, &info, WNOHANG), EINVAL);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_EQ(waitid(P_PIDFD, fd, &info, WEXITED), 0);
    CHECK_EQ(info.si_code, CLD_EXITED);
    CHECK_EQ(info.si_status, 2);
    close(fd);
}

// Children that nobody traces are told of as well, and signals interrupt.
static void others_too(void) {
    pid_t tracee = traced_child(wait_for_ever), other = plain_child(exits_late);
    CHECK_EQ(ptrace(PTRACE_CONT, tracee, 0, 0), 0);
    int status = 0;
    CHECK_EQ(waitpid(-1, &status, __WALL), other);
    CHECK_EQ(status, 4 << 8);
    struct sigaction action = {.sa_handler = on_alarm};
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    ualarm(30000, 0);
    CHECK_ERRNO(waitpid(-1, &status, __WALL), EINTR);
    CHECK_EQ(alarms, 1);
    action.sa_flags = SA_RESTART;
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    ualarm(30000, 0);
    CHECK_EQ(plain_child(exits_late) > 0, 1);
    CHECK(waitpid(-1, &status, __WALL) > 0);
    CHECK_EQ(status, 4 << 8);
    CHECK_EQ(alarms, 2);
    end_child(tracee);
}

int main(void) {
    with_wait4();
    with_waitid();
    others_too();
    return guest_passed();
}
