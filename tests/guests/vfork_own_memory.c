// CLONE_VFORK without CLONE_VM: the parent waits for the child, which has a copy of its memory;
// also of one so large that it stays where it is.
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

enum { PAGE = 4096 };

static void fork_and_wait(char* memory, size_t pages) {
    int released[2];
    CHECK_EQ(pipe(released), 0);
    pid_t child = (pid_t)syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
    CHECK(child >= 0);
    if (child == 0) {
        usleep(20000);
        long sum = 0;
        for (size_t i = 0; i < pages; i++) sum += memory[i * PAGE]++;
        CHECK_EQ(sum, (long)pages);
        CHECK_EQ(write(released[1], "x", 1), 1);
        _exit(9);
    }
    char byte = 0;
    CHECK_EQ(read(released[0], &byte, 1), 1);
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 9);
    for (size_t i = 0; i < pages; i++) CHECK_EQ(memory[i * PAGE], 1);
    close(released[0]);
    close(released[1]);
}

int main(void) {
    for (int round = 0; round < 3; round++) {
        size_t pages = round == 0 ? 10 : 6000;
        char* memory = malloc(pages * PAGE);
        CHECK(memory != NULL);
        memset(memory, 1, pages * PAGE);
        fork_and_wait(memory, pages);
        free(memory);
    }
    return guest_passed();
}
