// What a child of fork chooses for itself in its first moments holds later: processors, the time
// stamp counter, CPUID; and what its parent had chosen, it has.
#include <asm/prctl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "cpu_modes.h"
#include "guest.h"

static void choose(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

static int cpus[2];

static void find_cpus(void) {
    cpu_set_t all;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    for (int cpu = 0, found = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
        if (CPU_ISSET(cpu, &all)) cpus[found++] = cpu;
}

static void say(const char* who) {
    int reads = 0, asks = 0, there = 0, kept = 0;
    for (int i = 0; i < 30; i++) {
        reads += may_read();
        asks += may_ask();
        there += sched_getcpu() == cpus[1];
        cpu_set_t now;
        CHECK_EQ(sched_getaffinity(0, sizeof now, &now), 0);
        kept += CPU_COUNT(&now) == 1 && CPU_ISSET(cpus[1], &now);
        CHECK(getppid() > 0);
    }
    printf("%s: TSC %d, CPUID %d, on its CPU %d, allowed only that %d\n", who, reads, asks, there,
           kept);
    fflush(stdout);
}

static void choose_all(void) {
    choose(cpus[1]);
    CHECK_EQ(prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0), 0);
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0);
}

static void allow_all(void) {
    CHECK_EQ(prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0), 0);
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1);
}

static void* run_thread(void* unused) {
    say("its thread");
    return unused;
}

static void become_old(void) {
    usleep(60000);
    say("later");
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, run_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    fflush(stdout);
}

static void chooses_young(void) {
    choose_all();
    become_old();
}

static void changes_young(void) {  // what its parent has chosen
    allow_all();
    choose(cpus[1]);
    become_old();
}

static void inherits(void) {
    say("at once");
    become_old();
}

static void executes(void) {
    choose(cpus[1]);
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0);
    char text[20];
    snprintf(text, sizeof text, "%d", cpus[1]);
    execl("/proc/self/exe", "modes_young", text, NULL);
    _exit(1);
}

static void in_child(const char* name, void (*run)(void)) {
    printf("-- %s\n", name);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        run();
        _exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    printf("-- ends with %#x\n", status);
}

// By somebody else, before the child is old.
static void chosen_by_parent(void) {
    int pipes[2];
    CHECK_EQ(pipe(pipes), 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        CHECK_EQ(read(pipes[0], &byte, 1), 1);
        become_old();
        _exit(0);
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpus[1], &one);
    CHECK_EQ(sched_setaffinity(child, sizeof one, &one), 0);
    CHECK_EQ(write(pipes[1], "x", 1), 1);
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    printf("-- ends with %#x\n", status);
}

int main(int argc, char** argv) {
    signal(SIGSEGV, on_fault);
    if (argc > 1) {
        cpus[1] = atoi(argv[1]);
        say("image");
        return 0;
    }
    find_cpus();
    if (cpus[1] == 0) SKIP("needs two processors");
    in_child("chooses young", chooses_young);
    in_child("executes", executes);
    chosen_by_parent();
    choose_all();
    choose(cpus[0]);
    in_child("changes young", changes_young);
    choose(cpus[1]);
    in_child("inherits", inherits);
    allow_all();
    in_child("executes", executes);
    return guest_passed();
}
