// Threads of a tracee: each is traced by itself, stops by itself, and its end is told.
#include <pthread.h>

#include "ptrace.h"

static int meet[2];

static void* thread(void* unused) {
    (void)unused;
    char byte = 0;
    CHECK_EQ(read(meet[0], &byte, 1), 1);
    return NULL;
}

static void has_thread(void) {
    CHECK_EQ(pipe(meet), 0);
    pthread_t id;
    CHECK_EQ(pthread_create(&id, NULL, thread, NULL), 0);
    CHECK_EQ(write(meet[1], "x", 1), 1);
    CHECK_EQ(pthread_join(id, NULL), 0);
    _exit(5);
}

static void* exits(void* unused) {
    (void)unused;
    _exit(6);
}

static void thread_exits(void) {
    pthread_t id;
    CHECK_EQ(pthread_create(&id, NULL, exits, NULL), 0);
    wait_for_ever();
}

static void* executes(void* unused) {
    (void)unused;
    execl("/bin/true", "true", (char*)NULL);
    _exit(99);
}

static void thread_executes(void) {
    pthread_t id;
    CHECK_EQ(pthread_create(&id, NULL, executes, NULL), 0);
    wait_for_ever();
}

static pid_t start(void (*body)(void), long options, pid_t* tid) {
    pid_t child = traced_child(body);
    CHECK_EQ(ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACECLONE | options), 0);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGTRAP, PTRACE_EVENT_CLONE));
    unsigned long message = 0;
    CHECK_EQ(ptrace(PTRACE_GETEVENTMSG, child, 0, &message), 0);
    *tid = (pid_t)message;
    CHECK_WAIT(*tid, STOPPED(SIGSTOP, 0));
    struct user_regs_struct regs;
    CHECK_EQ(ptrace(PTRACE_GETREGS, *tid, 0, &regs), 0);
    return child;
}

int main(void) {
    pid_t tid = 0;
    pid_t child = start(has_thread, 0, &tid);
    CHECK_EQ(ptrace(PTRACE_CONT, tid, 0, 0), 0);
    // A signal for one thread stops that one.
    CHECK_EQ(syscall(SYS_tgkill, child, tid, SIGUSR1), 0);
    CHECK_WAIT(tid, STOPPED(SIGUSR1, 0));
    CHECK_EQ(ptrace(PTRACE_CONT, tid, 0, 0), 0);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    int status = 0;
    CHECK_EQ(waitpid(tid, &status, __WALL), tid);
    CHECK(WIFEXITED(status));
    CHECK_WAIT(child, 5 << 8);

    child = start(thread_exits, PTRACE_O_TRACEEXIT, &tid);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_EQ(ptrace(PTRACE_CONT, tid, 0, 0), 0);
    CHECK_WAIT(tid, STOPPED(SIGTRAP, PTRACE_EVENT_EXIT));
    unsigned long message = 0;
    CHECK_EQ(ptrace(PTRACE_GETEVENTMSG, tid, 0, &message), 0);
    CHECK_EQ(message, 6 << 8);
    CHECK_WAIT(child, STOPPED(SIGTRAP, PTRACE_EVENT_EXIT));
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    usleep(10000);
    CHECK_EQ(waitpid(child, NULL, __WALL | WNOHANG), 0);  // not before its other thread
    CHECK_EQ(ptrace(PTRACE_CONT, tid, 0, 0), 0);
    CHECK_WAIT(tid, 6 << 8);
    CHECK_WAIT(child, 6 << 8);

    // A thread that executes a program gets the process's id.
    child = start(thread_executes, PTRACE_O_TRACEEXEC, &tid);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_EQ(ptrace(PTRACE_CONT, tid, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGTRAP, PTRACE_EVENT_EXEC));
    CHECK_EQ(ptrace(PTRACE_GETEVENTMSG, child, 0, &message), 0);
    CHECK_EQ(message, tid);
    CHECK_ERRNO(ptrace(PTRACE_CONT, tid, 0, 0), ESRCH);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, 0);
    return guest_passed();
}
