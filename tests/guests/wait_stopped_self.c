// A child stops itself, is continued, is stopped by SIGTSTP; statuses are seen in order.
#include <signal.h>
#include <sys/wait.h>

#include "guest.h"

int main(void) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);  // in an orphaned process group terminal stops would be ignored
        raise(SIGSTOP);
        raise(SIGTSTP);
        raise(SIGTTIN);
        _exit(12);
    }
    int expected[] = {SIGSTOP, SIGTSTP, SIGTTIN};
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
        CHECK(WIFSTOPPED(status));
        CHECK_EQ(WSTOPSIG(status), expected[i]);
        CHECK_EQ(kill(child, SIGCONT), 0);
        CHECK_EQ(waitpid(child, &status, WCONTINUED), child);
        CHECK(WIFCONTINUED(status));
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(WEXITSTATUS(status), 12);
    return guest_passed();
}
