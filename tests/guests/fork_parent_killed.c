// Processes are killed at all moments while they fork. What they have forked lives on, and ends by
// itself: then nobody has the pipe any more.
#include <sys/wait.h>

#include "orphans.h"

enum { ROUNDS = 60, STEP_US = 300 };

int main(void) {
    for (int i = 0; i < ROUNDS; i++) {
        int ends[2];
        CHECK_EQ(pipe(ends), 0);
        pid_t parent = fork();
        CHECK(parent >= 0);
        if (parent == 0) {
            close(ends[0]);
            make_orphans(ends[1]);
        }
        close(ends[1]);
        usleep(i * STEP_US);
        CHECK_EQ(kill(parent, SIGKILL), 0);
        int status = 0;
        CHECK_EQ(waitpid(parent, &status, 0), parent);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        check_orphans_end(ends[0]);
    }
    return guest_passed();
}
