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

static long try(const void* arguments, size_t size) {
    long child = syscall(SYS_clone3, arguments, size);
    if (child == 0) _exit(0);
    if (child > 0) CHECK_EQ(waitpid((pid_t)child, NULL, __WALL), child);
    return child;
}

static void refuse(void) {
    struct clone_args plain = {.exit_signal = SIGCHLD}, changed;
    static char newer[2 * 4096];
    memcpy(newer, &plain, sizeof plain);
    CHECK_ERRNO(try(&plain, 40), EINVAL);
    CHECK(try(newer, 200) > 0);
    newer[150] = 1;
    CHECK_ERRNO(try(newer, 200), E2BIG);
    newer[150] = 0;
    CHECK_ERRNO(try(newer, 5000), E2BIG);
    CHECK_ERRNO(try((void*)16, sizeof plain), EFAULT);
    changed = plain, changed.exit_signal = 70;
    CHECK_ERRNO(try(&changed, sizeof changed), EINVAL);
    changed.exit_signal = 0x100 | SIGCHLD;
    CHECK_ERRNO(try(&changed, sizeof changed), EINVAL);
    changed = plain, changed.stack = 0x1000;
    CHECK_ERRNO(try(&changed, sizeof changed), EINVAL);
    changed = plain, changed.stack_size = 4096;
    CHECK_ERRNO(try(&changed, sizeof changed), EINVAL);
    changed = plain, changed.flags = CLONE_DETACHED;
    CHECK_ERRNO(try(&changed, sizeof changed), EINVAL);
    int tid = -1, pidfd = -1;
    changed = plain, changed.flags = CLONE_PARENT_SETTID | CLONE_PIDFD;
    changed.parent_tid = (uintptr_t)&tid, changed.pidfd = (uintptr_t)&pidfd;
    CHECK_EQ(try(&changed, sizeof changed), tid);
    CHECK(pidfd >= 0);
    CHECK_EQ(close(pidfd), 0);
}

int main(void) {
    refuse();
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
