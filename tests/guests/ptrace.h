// Shared by guests that trace their children with ptrace(2).
#ifndef GPR_TESTS_GUESTS_PTRACE_H
#define GPR_TESTS_GUESTS_PTRACE_H

#include <elf.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "guest.h"

// A wait status of a stop.
#define STOPPED(signal, event) ((event) << 16 | (signal) << 8 | 0x7f)

#define CHECK_WAIT(pid, expected)                          \
    do {                                                   \
        int wait_status = 0;                               \
        CHECK_EQ(waitpid(pid, &wait_status, __WALL), pid); \
        CHECK_EQ(wait_status, expected);                   \
    } while (0)

static inline long do_ptrace(long request, pid_t pid, unsigned long at, unsigned long data) {
    return syscall(SYS_ptrace, request, (long)pid, at, data);
}

// A child that runs `body` once it is traced and has been resumed.
static inline pid_t traced_child(void (*body)(void)) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK_EQ(ptrace(PTRACE_TRACEME, 0, 0, 0), 0);
        raise(SIGSTOP);
        body();
        _exit(0);
    }
    CHECK_WAIT(child, STOPPED(SIGSTOP, 0));
    return child;
}

// A child that runs `body`, and nobody traces.
static inline pid_t plain_child(void (*body)(void)) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        body();
        _exit(0);
    }
    return child;
}

static inline void wait_for_ever(void) {
    for (;;) pause();
}

static inline void end_child(pid_t child) {
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_WAIT(child, SIGKILL);
}

#endif
