// prctl(2): each option's values, errors, and what fork and exec keep.
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include "manual.h"

static void names(void) {
    char name[17] = "";
    TRY(prctl(PR_SET_NAME, "a name that is too long"));
    TRY(prctl(PR_GET_NAME, name));
    SAY("%s", name);
    TRY(prctl(PR_SET_NAME, manual_bad_pointer()));
    TRY(prctl(PR_GET_NAME, manual_bad_pointer()));
    FILE* comm = fopen("/proc/self/comm", "r");
    fgets(name, sizeof name, comm);
    SAY("%s", name);
    memcpy(manual_page_end(3), "ab", 3);
    char* end = (char*)manual_page_end(3);
    memcpy(end, "xy", 3);
    TRY(prctl(PR_SET_NAME, end));
    TRY(prctl(PR_GET_NAME, name));
    SAY("%s", name);
}

static void death_signal(void) {
    int number = -1;
    TRY(prctl(PR_GET_PDEATHSIG, &number));
    SAY("%d", number);
    TRY(prctl(PR_SET_PDEATHSIG, SIGUSR1));
    TRY(prctl(PR_GET_PDEATHSIG, &number));
    SAY("%d", number);
    TRY(prctl(PR_SET_PDEATHSIG, 65));
    TRY(prctl(PR_SET_PDEATHSIG, -1));
    TRY(prctl(PR_GET_PDEATHSIG, manual_bad_pointer()));
    if (fork() == 0) {
        prctl(PR_GET_PDEATHSIG, &number);
        SAY("child's %d", number);
        _exit(0);
    }
    wait(NULL);
    int told[2];
    CHECK_EQ(pipe(told), 0);
    pid_t middle = fork();
    if (middle == 0) {
        int ready[2];
        CHECK_EQ(pipe(ready), 0);
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGUSR1);
            sigset_t set;
            sigemptyset(&set);
            sigaddset(&set, SIGUSR1);
            sigprocmask(SIG_BLOCK, &set, NULL);
            usleep(50000);
            write(ready[1], "x", 1);
            siginfo_t info;
            char got = sigwaitinfo(&set, &info) == SIGUSR1 ? 'y' : 'n';
            write(told[1], &got, 1);
            _exit(0);
        }
        char byte;
        read(ready[0], &byte, 1);
        _exit(0);
    }
    waitpid(middle, NULL, 0);
    char byte = 0;
    TRY(read(told[0], &byte, 1));
    SAY("%c", byte);
}

static void dumpable(void) {
    TRY(prctl(PR_GET_DUMPABLE));
    TRY(prctl(PR_SET_DUMPABLE, 2));
    TRY(prctl(PR_SET_DUMPABLE, 3));
    TRY(prctl(PR_SET_DUMPABLE, -1));
    TRY(prctl(PR_SET_DUMPABLE, 0));
    TRY(prctl(PR_GET_DUMPABLE));
    if (fork() == 0) {
        TRY(prctl(PR_GET_DUMPABLE));
        _exit(0);
    }
    wait(NULL);
    TRY(prctl(PR_SET_DUMPABLE, 1));
    TRY(prctl(PR_GET_DUMPABLE));
}

static void capabilities(void) {
    TRY(prctl(PR_CAPBSET_READ, 0));
    TRY(prctl(PR_CAPBSET_READ, 64));
    TRY(prctl(PR_CAPBSET_READ, -1));
    TRY(prctl(PR_CAPBSET_DROP, 64));
    TRY(prctl(PR_CAPBSET_DROP, 7));
    TRY(prctl(PR_CAPBSET_READ, 7));
    TRY(prctl(PR_GET_KEEPCAPS));
    TRY(prctl(PR_SET_KEEPCAPS, 1));
    TRY(prctl(PR_SET_KEEPCAPS, 2));
    TRY(prctl(PR_GET_KEEPCAPS));
    TRY(prctl(PR_GET_SECUREBITS));
    TRY(prctl(PR_SET_SECUREBITS, 0x10000));
    TRY(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, 1, 0, 0));
    TRY(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 1, 0, 0));
    TRY(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 64, 0, 0));
    TRY(prctl(PR_CAP_AMBIENT, 99, 1, 0, 0));
    TRY(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 1, 0, 0));
    manual_become_nobody();
    TRY(prctl(PR_CAPBSET_DROP, 8));
    TRY(prctl(PR_SET_SECUREBITS, 1));
    TRY(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 1, 0, 0));
}

static void timer_slack(void) {
    TRY(prctl(PR_GET_TIMERSLACK));
    TRY(prctl(PR_SET_TIMERSLACK, 12345));
    TRY(prctl(PR_GET_TIMERSLACK));
    if (fork() == 0) {
        TRY(prctl(PR_GET_TIMERSLACK));
        prctl(PR_SET_TIMERSLACK, 0);
        TRY(prctl(PR_GET_TIMERSLACK));
        _exit(0);
    }
    wait(NULL);
    prctl(PR_SET_TIMERSLACK, 0);
    TRY(prctl(PR_GET_TIMERSLACK));
    TRY(prctl(PR_SET_TIMING, PR_TIMING_STATISTICAL));
    TRY(prctl(PR_SET_TIMING, PR_TIMING_TIMESTAMP));
    TRY(prctl(PR_GET_TIMING));
}

static void* own_slack(void* none) { return (void*)(long)prctl(PR_GET_TIMERSLACK); }

static void threads_differ(void) {
    prctl(PR_SET_TIMERSLACK, 777);
    pthread_t thread;
    void* slack;
    pthread_create(&thread, NULL, own_slack, NULL);
    pthread_join(thread, &slack);
    SAY("the new thread's: %ld", (long)slack);
}

static void others(void) {
    int value = -1;
    TRY(prctl(PR_GET_CHILD_SUBREAPER, &value));
    SAY("%d", value);
    TRY(prctl(PR_SET_CHILD_SUBREAPER, 5));
    TRY(prctl(PR_GET_CHILD_SUBREAPER, &value));
    SAY("%d", value);
    TRY(prctl(PR_GET_CHILD_SUBREAPER, manual_bad_pointer()));
    TRY(prctl(PR_SET_CHILD_SUBREAPER, 0));
    TRY(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    TRY(prctl(PR_GET_NO_NEW_PRIVS, 1, 0, 0, 0));
    TRY(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
    TRY(prctl(PR_SET_NO_NEW_PRIVS, 1, 1, 0, 0));
    TRY(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    TRY(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    TRY(prctl(PR_GET_TSC, &value));
    SAY("%d", value);
    TRY(prctl(PR_SET_TSC, 7));
    TRY(prctl(PR_GET_TSC, manual_bad_pointer()));
    TRY(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
    TRY(prctl(PR_GET_THP_DISABLE, 1, 0, 0, 0));
    TRY(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
    TRY(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
    TRY(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0));
    TRY(prctl(PR_MCE_KILL_GET, 0, 0, 0, 0));
    TRY(prctl(PR_MCE_KILL_GET, 1, 0, 0, 0));
    TRY(prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, 0, 0));
    TRY(prctl(PR_MCE_KILL_GET, 0, 0, 0, 0));
    TRY(prctl(PR_MCE_KILL, PR_MCE_KILL_SET, 9, 0, 0));
    TRY(prctl(PR_MCE_KILL, PR_MCE_KILL_CLEAR, 0, 0, 0));
    TRY(prctl(PR_GET_IO_FLUSHER, 0, 0, 0, 0));
    TRY(prctl(PR_GET_SECCOMP));
    TRY(prctl(PR_SET_SECCOMP, 77, 0, 0, 0));
    TRY(prctl(PR_SET_SECCOMP, 2, NULL, 0, 0));
    TRY(prctl(PR_SET_ENDIAN, 0));
    TRY(prctl(PR_GET_UNALIGN, &value));
    TRY(prctl(PR_SET_FP_MODE, 0, 0, 0, 0));
    TRY(prctl(PR_GET_TAGGED_ADDR_CTRL, 0, 0, 0, 0));
    TRY(prctl(PR_SVE_GET_VL));
    TRY(prctl(PR_TASK_PERF_EVENTS_DISABLE));
    TRY(prctl(PR_TASK_PERF_EVENTS_ENABLE));
    TRY(prctl(PR_SET_MM, PR_SET_MM_START_CODE, 0, 0, 0));
    TRY(prctl(PR_SET_MM, PR_SET_MM_START_CODE, 0x1000, 1, 0));
    TRY(prctl(PR_SET_MM, 999, 0x1000, 0, 0));
    TRY(prctl(PR_GET_SPECULATION_CTRL, 99, 0, 0, 0));
    TRY(prctl(PR_GET_SPECULATION_CTRL, 0, 1, 0, 0));
    TRY(prctl(PR_SET_SPECULATION_CTRL, 99, 0, 0, 0));
    TRY(prctl(0x53564d42));
    TRY(prctl(-1));
}

int main(void) {
    manual_begin();
    manual_in_child("names", names);
    manual_in_child("death signal", death_signal);
    manual_in_child("dumpable", dumpable);
    manual_in_child("capabilities", capabilities);
    manual_in_child("timer slack", timer_slack);
    manual_in_child("threads differ", threads_differ);
    manual_in_child("others", others);
    return guest_passed();
}
