// clone3 and clone with CLONE_FILES, CLONE_FS, CLONE_PIDFD, CLONE_VM|CLONE_VFORK, own exit signal.
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

static volatile int got_signal;
static void on_signal(int number) { got_signal = number; }

static pid_t start(uint64_t flags, int* pidfd, int exit_signal) {
    struct clone_args arguments = {
        .flags = flags, .pidfd = (uintptr_t)pidfd, .exit_signal = (uint64_t)exit_signal};
    return (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
}

int main(void) {
    int pidfd = -1, status;
    signal(SIGUSR1, on_signal);
    pid_t child = start(CLONE_FILES | CLONE_FS | CLONE_PIDFD, &pidfd, SIGUSR1);
    if (child == 0) {
        dup2(1, 100);
        _exit(chdir("tmp") == 0 ? 4 : 5);
    }
    CHECK(child > 0 && pidfd >= 0);
    CHECK_ERRNO(waitpid(child, &status, 0), ECHILD);
    CHECK_EQ(waitpid(child, &status, __WALL), child);
    CHECK_EQ(WEXITSTATUS(status), 4);
    CHECK_EQ(got_signal, SIGUSR1);
    CHECK(fcntl(100, F_GETFD) >= 0);
    char text[4096];
    CHECK(getcwd(text, sizeof text) && strcmp(strrchr(text, '/'), "/tmp") == 0);
    struct pollfd polled = {pidfd, POLLIN, 0};
    CHECK_EQ(poll(&polled, 1, 0), 1);
    child = start(CLONE_CLEAR_SIGHAND, NULL, SIGCHLD);
    if (child == 0) {
        struct sigaction now;
        sigaction(SIGUSR1, NULL, &now);
        _exit(now.sa_handler == SIG_DFL ? 6 : 7);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(WEXITSTATUS(status), 6);
    CHECK_ERRNO(start(CLONE_THREAD, NULL, 0), EINVAL);
    CHECK_ERRNO(start(CLONE_SIGHAND, NULL, 0), EINVAL);
    return guest_passed();
}
