// SIGCHLD with its siginfo, SA_NOCLDWAIT, SIGPIPE caught and as a death.
#include <signal.h>
#include <sys/wait.h>

#include "guest.h"

static volatile int children, child_status, child_code, pipes;
static volatile pid_t child_pid;

static void on_child(int number, siginfo_t* info, void* context) {
    children++;
    child_pid = info->si_pid;
    child_status = info->si_status;
    child_code = info->si_code;
}
static void on_pipe(int number) { pipes++; }

static pid_t start(int how) {
    pid_t pid = fork();
    if (pid == 0) {
        if (how >= 0) _exit(how);
        signal(SIGPIPE, SIG_DFL);
        int fds[2];
        CHECK_EQ(pipe(fds), 0);
        close(fds[0]);
        write(fds[1], "x", 1);
        _exit(99);
    }
    return pid;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART};
    CHECK_EQ(sigaction(SIGCHLD, &action, NULL), 0);
    int status;
    pid_t pid = start(5);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(WEXITSTATUS(status), 5);
    CHECK(children == 1 && child_pid == pid && child_status == 5 && child_code == CLD_EXITED);
    pid = start(-1);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
    CHECK(child_code == CLD_KILLED && child_status == SIGPIPE);
    action.sa_flags |= SA_NOCLDWAIT;
    CHECK_EQ(sigaction(SIGCHLD, &action, NULL), 0);
    start(0);
    CHECK_ERRNO(wait(&status), ECHILD);
    signal(SIGPIPE, on_pipe);
    int fds[2];
    CHECK_EQ(pipe(fds), 0);
    close(fds[0]);
    CHECK_ERRNO(write(fds[1], "x", 1), EPIPE);
    CHECK_EQ(pipes, 1);
    return guest_passed();
}
