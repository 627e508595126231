// Children are stopped and continued at any moment of their lives, also right after a fork.
#include <signal.h>
#include <sys/wait.h>

#include "guest.h"

enum { rounds = 40 };

static void work_for_ever(void) {
    volatile unsigned long long count = 0;
    for (;;) {
        count++;
        if (count % 4096 == 0) usleep(100);
    }
}

static void see_stop(pid_t child) {
    int status = 0;
    CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
    CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
}

static void see_end(pid_t child) {
    int status = 0;
    CHECK_EQ(kill(child, SIGTERM), 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

int main(void) {
    for (int round = 0; round < rounds; round++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) work_for_ever();
        if (round % 4 != 0) usleep((unsigned)round * 1000);
        CHECK_EQ(kill(child, SIGSTOP), 0);
        if (round % 3 == 0) {  // the stop may never have been seen, but it is over
            CHECK_EQ(kill(child, SIGCONT), 0);
            see_end(child);
            continue;
        }
        see_stop(child);
        int status = 0;
        CHECK_EQ(waitpid(child, &status, WNOHANG | WCONTINUED), 0);
        CHECK_EQ(kill(child, SIGCONT), 0);
        CHECK_EQ(waitpid(child, &status, WCONTINUED), child);
        CHECK(WIFCONTINUED(status));
        see_end(child);
    }
    return guest_passed();
}
