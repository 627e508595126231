// What a debugger is asked about children: they are made by the first thread and by another, by
// fork and by vfork, and some execute another program. With "wait" it waits until somebody sets
// `go`, with "alone" it makes no thread, with "sleepy" its first child waits for `go`, too;
// otherwise the arguments say what it is: a program that it has executed itself.
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

extern char** environ;

volatile int go, both = 5, parents_steps, childs_steps, statuses;
static volatile int over, sleepy;
static const char* itself;

__attribute__((noinline)) void in_child(int n) {
    both = both + n;
    childs_steps = childs_steps + 1;
    childs_steps = childs_steps + 10;
}

__attribute__((noinline)) void in_parent(int n) {
    both = both + 100 * n;
    parents_steps = parents_steps + 1;
}

__attribute__((noinline)) int in_program(int n) { return 2 * n; }

__attribute__((noinline)) void wait_for(pid_t child) {
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    statuses = statuses + WEXITSTATUS(status);
}

__attribute__((noinline)) void make_child(int n) {
    pid_t child = fork();
    if (child == 0) {
        while (sleepy && go != 2) usleep(1000);
        in_child(n);
        _exit(both);
    }
    sleepy = 0;
    in_parent(n);
    wait_for(child);
}

__attribute__((noinline)) void make_program(int n) {
    pid_t child = fork();
    if (child == 0) {
        in_child(n);
        execl(itself, itself, "program", NULL);
        _exit(99);
    }
    wait_for(child);
}

__attribute__((noinline)) void spawn_program(int n) {
    pid_t child = 0;
    char* arguments[] = {(char*)itself, "spawned", NULL};
    CHECK_EQ(posix_spawn(&child, itself, NULL, NULL, arguments, environ), 0);
    in_parent(n);
    wait_for(child);
}

__attribute__((noinline)) void spawn_nothing(int n) {
    pid_t child = 0;
    char* arguments[] = {"nothing", NULL};
    CHECK_EQ(posix_spawn(&child, "/nowhere/nothing", NULL, NULL, arguments, environ), ENOENT);
    in_parent(n);
}

static void* makes_child(void* unused) {
    make_child(2);
    return unused;
}

static void* computes(void* unused) {
    while (!over) usleep(1000);
    return unused;
}

int main(int argc, char** argv) {
    itself = argv[0];
    sleepy = argc > 1 && !strcmp(argv[1], "sleepy");
    int waits = sleepy || (argc > 1 && (!strcmp(argv[1], "wait") || !strcmp(argv[1], "alone")));
    if (argc > 1 && !waits) return in_program(!strcmp(argv[1], "spawned") ? 4 : 6);
    int alone = waits && argv[1][0] == 'a';
    pthread_t beside, maker;
    if (!alone) CHECK_EQ(pthread_create(&beside, NULL, computes, NULL), 0);
    if (waits) {
        puts("ready");
        fflush(stdout);
        while (!go) usleep(100000);
    }
    make_child(1);
    if (!alone) {
        CHECK_EQ(pthread_create(&maker, NULL, makes_child, NULL), 0);
        pthread_join(maker, NULL);
    }
    make_program(3);
    spawn_program(4);
    spawn_nothing(5);
    over = 1;
    if (!alone) pthread_join(beside, NULL);
    printf("parent %d, child %d, statuses %d, both %d\n", parents_steps, childs_steps, statuses,
           both);
    return guest_passed();
}
