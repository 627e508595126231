// A process group consists of what the program has put into it: its signals stop and end nobody
// else, and it is empty when the last one has left.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

static int status;

// The child is split by then, in a group of its own.
static pid_t leader(int* ready) {
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(ends[0]);
        CHECK_EQ(setpgid(0, 0), 0);
        usleep(80000);
        *ready = ends[1];
        return 0;
    }
    close(ends[1]);
    *ready = ends[0];
    return child;
}

static void await_child(int ready) {
    char byte;
    while (read(ready, &byte, 1) < 0) continue;
    close(ready);
}

static void use_memory(void) {
    for (int i = 0; i < 50; i++) {
        char* memory =
            mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(memory != MAP_FAILED);
        memset(memory, i, 1 << 20);
        CHECK_EQ(munmap(memory, 1 << 20), 0);
    }
}

static void continued_alone(void) {
    int ready;
    pid_t child = leader(&ready);
    if (child == 0) {
        CHECK_EQ(write(ready, "x", 1), 1);
        raise(SIGSTOP);
        use_memory();
        _exit(11);
    }
    await_child(ready);
    CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
    CHECK(WIFSTOPPED(status));
    CHECK_EQ(kill(-child, SIGSTOP), 0);
    usleep(20000);
    CHECK_EQ(kill(child, SIGCONT), 0);
    pid_t pid;
    while ((pid = waitpid(child, &status, WUNTRACED)) == child && WIFSTOPPED(status)) {
        CHECK_EQ(kill(child, SIGCONT), 0);
    }
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 11);
}

static void gone_from_group(void) {
    int ready;
    pid_t parents = getpgrp(), child = leader(&ready);
    if (child == 0) {
        CHECK_EQ(setpgid(0, parents), 0);
        CHECK_EQ(write(ready, "x", 1), 1);
        usleep(50000);
        use_memory();
        CHECK_EQ(setsid(), getpid());
        _exit(12);
    }
    await_child(ready);
    CHECK_ERRNO(kill(-child, 0), ESRCH);
    CHECK_ERRNO(kill(-child, SIGKILL), ESRCH);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 12);
}

int main(void) {
    alarm(60);
    continued_alone();
    gone_from_group();
    return guest_passed();
}
