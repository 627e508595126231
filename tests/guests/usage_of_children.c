// What children have used counts when they are waited for, not before, and never if nobody waits.
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/times.h>
#include <sys/wait.h>

#include "guest.h"

enum { WORK_MS = 250 };

static long children_ms(int of) {
    struct rusage usage;
    CHECK_EQ(getrusage(of, &usage), 0);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

static long times_ms(void) {
    struct tms now;
    CHECK(times(&now) != (clock_t)-1);
    return (now.tms_cutime + now.tms_cstime) * 10;
}

static const char* amount(long ms) {
    return ms < WORK_MS / 2       ? "little"
           : ms < WORK_MS * 3 / 2 ? "once"
           : ms < WORK_MS * 5 / 2 ? "twice"
                                  : "more";
}

static long before_usage, before_times;
static void begin(void) {
    before_usage = children_ms(RUSAGE_CHILDREN);
    before_times = times_ms();
}
static void show(const char* when) {
    printf("%s: %s, %s\n", when, amount(children_ms(RUSAGE_CHILDREN) - before_usage),
           amount(times_ms() - before_times));
    fflush(stdout);
}

static pid_t works(void (*also)(void)) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child != 0) return child;
    guest_compute(WORK_MS);
    if (also) also();
    _exit(3);
}

static void has_ended(pid_t child) {
    siginfo_t info;
    CHECK_EQ(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    CHECK_EQ(info.si_pid, child);
}

static void grandchild(void) {
    pid_t child = works(NULL);
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
}
static void leaves_grandchild(void) {
    pid_t child = works(NULL);
    has_ended(child);  // and is inherited by somebody who is no child
}

static void all(void) {
    int status;
    struct rusage usage;
    begin();
    pid_t child = works(NULL);
    has_ended(child);
    show("ended");
    CHECK_EQ(waitpid(child, &status, 0), child);
    show("waited for");
    begin();
    child = works(NULL);
    CHECK_EQ(wait4(child, &status, 0, &usage), child);
    printf("wait4 says %s\n", amount((usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
                                     (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000));
    show("wait4");
    begin();
    child = works(grandchild);
    has_ended(child);
    show("with a child of its own");
    CHECK_EQ(waitpid(child, &status, 0), child);
    show("waited for both");
    begin();
    child = works(leaves_grandchild);
    CHECK_EQ(waitpid(child, &status, 0), child);
    show("one left behind");
}

static void ignored(void) {
    signal(SIGCHLD, SIG_IGN);
    begin();
    pid_t child = works(NULL);
    CHECK_ERRNO(waitpid(child, NULL, 0), ECHILD);
    show("ignored");
    signal(SIGCHLD, SIG_DFL);
}

static void* in_thread(void* unused) {
    all();
    return unused;
}

int main(void) {
    all();
    ignored();
    printf("-- of a thread\n");
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, in_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    return guest_passed();
}
