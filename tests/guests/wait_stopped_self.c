// A child stops itself, is continued, is stopped by SIGTSTP; statuses are seen in order. It stops
// again only when it is told to: a stop takes a continuation that nobody has seen yet away.
#include <signal.h>
#include <sys/wait.h>

#include "guest.h"

int main(void) {
    int status, seen[2];
    char word = 0;
    CHECK_EQ(pipe(seen), 0);
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);  // in an orphaned process group terminal stops would be ignored
        raise(SIGSTOP);
        CHECK_EQ(read(seen[0], &word, 1), 1);
        raise(SIGTSTP);
        CHECK_EQ(read(seen[0], &word, 1), 1);
        raise(SIGTTIN);
        CHECK_EQ(read(seen[0], &word, 1), 1);
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
        CHECK_EQ(write(seen[1], &word, 1), 1);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(WEXITSTATUS(status), 12);
    return guest_passed();
}
