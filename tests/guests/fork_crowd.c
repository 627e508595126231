// More processes at once than a session has few ids for: all wait, then all say who they are.
#include <sys/wait.h>

#include "guest.h"

enum { children = 180 };

int main(void) {
    int go[2], said[2];
    CHECK_EQ(pipe(go), 0);
    CHECK_EQ(pipe(said), 0);
    pid_t pids[children];
    for (int i = 0; i < children; i++) {
        pids[i] = fork();
        CHECK(pids[i] >= 0);
        if (pids[i] != 0) continue;
        char byte;
        close(go[1]);
        CHECK_EQ(write(said[1], &i, sizeof i), sizeof i);
        CHECK_EQ(read(go[0], &byte, 1), 0);
        _exit(i % 100);
    }
    int sum = 0;
    for (int i = 0; i < children; i++) {
        int which;
        CHECK_EQ(read(said[0], &which, sizeof which), sizeof which);
        sum += which;
    }
    printf("%d processes, sum %d\n", children, sum);
    // Those that wait are split by now, unless they are on their way.
    usleep(300000);
    close(go[1]);
    for (int i = 0; i < children; i++) {
        int status;
        CHECK_EQ(waitpid(pids[i], &status, 0), pids[i]);
        CHECK_EQ(WEXITSTATUS(status), i % 100);
    }
    return guest_passed();
}
