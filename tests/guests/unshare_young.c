// A child that gives its own children a namespace of ids or of time, and lives on: they are the
// only ones in it, and what becomes of them does nothing to it. Then it becomes another program.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "guest.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static void live_on(void) { usleep(60000); }

static int status_of(pid_t child) {
    int status = -1;
    CHECK(child > 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    return status;
}

// The first process of the namespace, and a second one beside it.
static void have_children(void) {
    int pipes[2];
    CHECK_EQ(pipe(pipes), 0);
    pid_t first = fork();
    if (first == 0) {
        CHECK_EQ(getpid(), 1);
        char byte;
        CHECK_EQ(read(pipes[0], &byte, 1), 1);
        live_on();
        *(volatile int*)16 = 1;
    }
    pid_t second = fork();
    if (second == 0) _exit(getpid() == 2 ? 22 : 23);
    CHECK_EQ(status_of(second), 22 << 8);
    CHECK_EQ(write(pipes[1], "x", 1), 1);
    CHECK_EQ(status_of(first), SIGSEGV);
    CHECK_ERRNO(fork(), ENOMEM);  // the namespace has ended
    live_on();
}

static void unshare_ids(void) {
    CHECK_EQ(unshare(CLONE_NEWPID), 0);
    live_on();
    CHECK(getpid() > 1);
    have_children();
}

static void unshare_time(void) {
    if (unshare(CLONE_NEWTIME) != 0) return;  // a kernel without
    live_on();
    pid_t child = fork();
    if (child == 0) {
        live_on();
        _exit(24);
    }
    CHECK_EQ(status_of(child), 24 << 8);
}

static void join_ids(void) {
    int told[2];
    CHECK_EQ(pipe(told), 0);
    pid_t maker = fork();
    if (maker == 0) {
        CHECK_EQ(unshare(CLONE_NEWPID), 0);
        pid_t first = fork();
        if (first == 0) {
            for (;;) pause();
        }
        CHECK_EQ(write(told[1], &first, sizeof first), sizeof first);
        _exit(status_of(first) == SIGKILL ? 25 : 26);
    }
    pid_t first;
    CHECK_EQ(read(told[0], &first, sizeof first), sizeof first);
    pid_t joins = fork();
    if (joins == 0) {
        char name[64];
        snprintf(name, sizeof name, "/proc/%d/ns/pid", first);
        int fd = open(name, O_RDONLY);
        CHECK(fd >= 0);
        CHECK_EQ(setns(fd, 0), 0);
        live_on();
        pid_t child = fork();
        if (child == 0) _exit(getpid());
        CHECK_EQ(status_of(child), 2 << 8);
        CHECK_EQ(kill(first, SIGKILL), 0);
        live_on();
        _exit(27);
    }
    CHECK_EQ(status_of(joins), 27 << 8);
    CHECK_EQ(status_of(maker), 25 << 8);
}

static void unshare_and_exec(void) {
    CHECK_EQ(unshare(CLONE_NEWPID), 0);
    execl("/proc/self/exe", "unshare_young", "executed", NULL);
    _exit(1);
}

static void in_child(const char* name, void (*act)(void)) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        act();
        _exit(7);
    }
    CHECK_EQ(status_of(child), 7 << 8);
    printf("%s\n", name);
}

int main(int argc, char** argv) {
    (void)argv;
    if (argc > 1) {
        have_children();
        return 7;
    }
    int probe = fork();
    if (probe == 0) _exit(unshare(CLONE_NEWPID) != 0);
    if (status_of(probe) != 0) SKIP("pid namespaces need root");
    in_child("unshares ids", unshare_ids);
    in_child("unshares time", unshare_time);
    in_child("joins ids", join_ids);
    in_child("unshares ids and executes", unshare_and_exec);
    return guest_passed();
}
