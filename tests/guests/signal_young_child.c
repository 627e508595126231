// A child that changes what its parent wanted done once about a signal, and lives long enough to be
// taken to another node afterwards: its own wishes count.
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

static volatile sig_atomic_t handled;

static void handle(int signal) {
    (void)signal;
    handled++;
}

static void set(unsigned flags) {
    struct sigaction action = {.sa_handler = handle, .sa_flags = (int)flags};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
}

static int child_of(unsigned parents, unsigned childs) {
    set(parents);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        set(childs);
        usleep(150000);
        raise(SIGUSR1);
        usleep(20000);
        raise(SIGUSR1);
        usleep(20000);
        _exit(handled);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return status;
}

// A call that the handler interrupts goes on, or not.
static int interrupted(unsigned parents, unsigned childs) {
    set(parents);
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        set(childs);
        usleep(150000);
        pid_t waker = fork();
        if (waker == 0) {
            usleep(100000);
            kill(getppid(), SIGUSR1);
            usleep(100000);
            _exit(write(ends[1], "x", 1) != 1);
        }
        char byte;
        ssize_t got = read(ends[0], &byte, 1);
        while (wait(NULL) < 0) {
        }
        _exit(got == 1 ? 1 : 2);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    close(ends[0]);
    close(ends[1]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void) {
    alarm(30);
    int status = child_of(SA_RESETHAND, 0);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 2);
    status = child_of(0, SA_RESETHAND);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), SIGUSR1);
    CHECK_EQ(interrupted(SA_RESTART, 0), 2);
    CHECK_EQ(interrupted(0, SA_RESTART), 1);
    return guest_passed();
}
