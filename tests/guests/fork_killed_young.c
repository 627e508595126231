// Children are killed at all moments of their first milliseconds; the program does not notice.
#include <signal.h>
#include <sys/wait.h>

#include "guest.h"

enum { ROUNDS = 60, STEP_US = 1000 };

int main(void) {
    for (int i = 0; i < ROUNDS; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            for (volatile long n = 0;; n++) {
            }
        }
        usleep(i * STEP_US);
        CHECK_EQ(kill(child, SIGKILL), 0);
        int status = 0;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    return guest_passed();
}
