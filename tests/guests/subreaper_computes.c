// A subreaper that computes, with children that compute, finds these and no others.
#include <sys/prctl.h>
#include <sys/wait.h>

#include "guest.h"

int main(void) {
    CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    for (int i = 0; i < 4; i++) {
        guest_compute(100);
        pid_t pid = fork();
        if (pid == 0) {
            guest_compute(200);
            _exit(i);
        }
        int status;
        CHECK_EQ(wait(&status), pid);
        CHECK_EQ(status, i << 8);
        CHECK(waitpid(-1, &status, WNOHANG) <= 0);
    }
    return guest_passed();
}
