// A child waits for a child of its own, which takes its time, as in vfork(2), but with memory of
// its own. Whoever attaches to the parent meanwhile cannot stop the one that waits, and must leave
// it as it was.
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"

static int wait_in_vfork(void) {
    const pid_t child = (pid_t)syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        const struct timespec time = {3, 500000000};
        nanosleep(&time, NULL);
        _exit(7);
    }
    int status = 0;
    CHECK(child > 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void) {
    const pid_t child = fork();
    if (child == 0) _exit(wait_in_vfork() + 1);
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 8);
    return guest_passed();
}
