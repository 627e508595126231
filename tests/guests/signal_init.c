// The first process of a pid namespace dies of what its own instructions cause, blocked and ignored
// or not, and of no other signal but SIGKILL.
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

static void touch_nothing(void) { *(volatile int*)16 = 1; }
static void no_instruction(void) { __asm__ volatile("ud2"); }
static void breakpoint(void) { __asm__ volatile("int3"); }
static void divide(void) {
    volatile int zero = 0, many = 7;
    volatile int result = many / zero;
    (void)result;
}
static void beyond_end(void) {
    int fd = memfd_create("empty", 0);
    volatile char* page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    (void)*page;
}
static void call_abort(void) { abort(); }
static void blocked(void) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    touch_nothing();
}
static void ignored(void) {
    signal(SIGSEGV, SIG_IGN);
    touch_nothing();
}
static void on_fault(int signal) { _exit(40 + signal); }
static void handled(void) {
    signal(SIGSEGV, on_fault);
    touch_nothing();
}
static void overflow(void) {  // the handler has no stack
    signal(SIGSEGV, on_fault);
    __asm__ volatile("mov $64, %rsp; push %rax");
}
static void raise_term(void) {
    CHECK_EQ(kill(getpid(), SIGTERM), 0);
    _exit(5);
}

static const struct {
    const char* name;
    void (*act)(void);
} deaths[] = {
    {"touches nothing", touch_nothing},
    {"no instruction", no_instruction},
    {"breakpoint", breakpoint},
    {"divides by zero", divide},
    {"beyond the end", beyond_end},
    {"abort", call_abort},
    {"blocked", blocked},
    {"ignored", ignored},
    {"handled", handled},
    {"no stack for the handler", overflow},
    {"sends itself SIGTERM", raise_term},
};

static pid_t start(int (*first)(void)) {
    long pid = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
    if (pid < 0 && errno == EPERM) SKIP("pid namespaces need root");
    CHECK(pid >= 0);
    if (pid == 0) _exit(first());
    return (pid_t)pid;
}

static void (*to_do)(void);
static int late;
static int act(void) {
    CHECK_EQ(getpid(), 1);
    if (late) usleep(60000);
    to_do();
    return 3;
}
static int wait_for_ever(void) {
    while (pause() == -1) continue;
    return 1;
}

static void show(const char* name, int status) {
    if (WIFSIGNALED(status)) {
        printf("%s: signal %d\n", name, WTERMSIG(status));
    } else {
        printf("%s: exit %d\n", name, WEXITSTATUS(status));
    }
}

int main(void) {
    const struct rlimit no_core = {0, 0};
    CHECK_EQ(setrlimit(RLIMIT_CORE, &no_core), 0);
    setvbuf(stdout, NULL, _IOLBF, 0);
    int status;
    for (late = 0; late < 2; late++) {
        for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++) {
            to_do = deaths[i].act;
            pid_t pid = start(act);
            CHECK_EQ(waitpid(pid, &status, 0), pid);
            show(deaths[i].name, status);
        }
    }
    pid_t pid = start(wait_for_ever);
    CHECK_EQ(kill(pid, SIGTERM), 0);
    CHECK_EQ(kill(pid, SIGSEGV), 0);
    usleep(20000);
    CHECK_EQ(waitpid(pid, &status, WNOHANG), 0);
    CHECK_EQ(kill(pid, SIGKILL), 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    show("killed", status);
    return guest_passed();
}
