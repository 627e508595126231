// What an image has of the thread that made it, which need not be the first one: whether it may
// read the time stamp counter (without which the dynamic linker dies), its timer slack and its
// processors. CPUID it may ask in any case.
#include <asm/prctl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "cpu_modes.h"
#include "guest.h"

static void say(const char* who) {
    signal(SIGSEGV, on_fault);
    int reads = 0, asks = 0, mode = 0;
    for (int i = 0; i < 20; i++) {
        reads += may_read();
        asks += may_ask();
        CHECK(getppid() > 0);
    }
    CHECK_EQ(prctl(PR_GET_TSC, &mode, 0, 0, 0), 0);
    cpu_set_t cpus;
    CHECK_EQ(sched_getaffinity(0, sizeof cpus, &cpus), 0);
    printf("%s: TSC %d/20 (mode %d), CPUID %d/20 (%ld), slack %d, one CPU %d\n", who, reads, mode,
           asks, syscall(SYS_arch_prctl, ARCH_GET_CPUID, 0), prctl(PR_GET_TIMERSLACK),
           CPU_COUNT(&cpus) == 1);
    fflush(stdout);
}

static void forbid(int slack, int tsc_too) {
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(sched_getcpu(), &first);
    CHECK_EQ(sched_setaffinity(0, sizeof first, &first), 0);
    CHECK_EQ(prctl(PR_SET_TIMERSLACK, slack), 0);
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0);
    if (!tsc_too) return;
    CHECK_EQ(prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0), 0);
}

static void run_image(const char* who) {
    execl("/proc/self/exe", "exec_modes", who, NULL);
    CHECK(!"exec failed");
}

static int tsc_too;

static void* forbids_and_waits(void* unused) {
    forbid(34567, tsc_too);
    for (;;) pause();
    return unused;
}

static void* forbids_and_execs(void* who) {
    forbid(45678, tsc_too);
    run_image(who);
    return NULL;
}

static void* execs(void* who) {
    usleep(20000);
    run_image(who);
    return NULL;
}

static void begin(void* (*run)(void*), void* argument) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, run, argument), 0);
    usleep(10000);
}

static void main_has_and_execs(void) {
    forbid(12345, tsc_too);
    run_image("the main thread has and calls");
}

static void other_has(void) {
    begin(forbids_and_waits, NULL);
    run_image("another has, the main thread calls");
}

static void other_has_and_execs(void) {
    begin(forbids_and_execs, "another has and calls");
    for (;;) pause();
}

static void main_has_other_execs(void) {
    begin(execs, "the main thread has, another calls");
    forbid(23456, tsc_too);
    for (;;) pause();
}

int main(int argc, char** argv) {
    if (argc > 1) {
        say(argv[1]);
        prctl(PR_SET_TIMERSLACK, 0);
        printf("slack to begin with: %d\n", prctl(PR_GET_TIMERSLACK));
        CHECK_EQ(prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0), 0);
        say("allowed");
        return 0;
    }
    void (*ways[])(void) = {main_has_and_execs, other_has, other_has_and_execs,
                            main_has_other_execs};
    for (int round = 0; round < 4; round++) {
        int young = round & 1;
        tsc_too = round >> 1;
        for (int i = 0; i < 4; i++) {
            fflush(stdout);
            pid_t child = fork();
            if (child == 0) {
                if (!young) usleep(50000);
                ways[i]();
            }
            int status = 0;
            CHECK_EQ(waitpid(child, &status, 0), child);
            printf("%s child: %#x\n", young ? "young" : "old", status);
        }
    }
    return guest_passed();
}
