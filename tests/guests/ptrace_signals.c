// Signals of a tracee: what they tell, what the tracer makes of them, which wait, which are
// blocked.
#include "ptrace.h"

struct peek {
    uint64_t from;
    uint32_t flags;
    int32_t count;
};

static volatile int got, got_value;

static void on_signal(int signal, siginfo_t* info, void* context) {
    (void)context;
    got = signal;
    got_value = info->si_value.sival_int;
}

static void tells_value(void) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    union sigval value = {.sival_int = 5};
    sigqueue(getpid(), SIGUSR1, value);
    _exit(got == SIGUSR2 ? got_value : 100 + got);
}

static void blocks(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR1);
    raise(SIGUSR2);
    raise(SIGTRAP);
    _exit(0);
}

static void faults(void) {
    volatile uintptr_t nowhere = 16;
    *(volatile int*)nowhere = 1;
}

int main(void) {
    pid_t child = traced_child(tells_value);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGUSR1, 0));
    siginfo_t info;
    CHECK_EQ(ptrace(PTRACE_GETSIGINFO, child, 0, &info), 0);
    CHECK_EQ(info.si_code, SI_QUEUE);
    CHECK_EQ(info.si_pid, child);
    CHECK_EQ(info.si_value.sival_int, 5);
    // Another signal instead, with another value.
    info.si_signo = SIGUSR2;
    info.si_value.sival_int = 66;
    CHECK_EQ(ptrace(PTRACE_SETSIGINFO, child, 0, &info), 0);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, SIGUSR2), 0);
    CHECK_WAIT(child, 66 << 8);

    child = traced_child(tells_value);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGUSR1, 0));
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);  // none
    CHECK_WAIT(child, 100 << 8);

    child = traced_child(blocks);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGTRAP, 0));
    CHECK_EQ(ptrace(PTRACE_GETSIGINFO, child, 0, &info), 0);
    CHECK_EQ(info.si_code, SI_TKILL);
    uint64_t mask = 0;
    const uint64_t both = 1UL << (SIGUSR1 - 1) | 1UL << (SIGUSR2 - 1);
    CHECK_EQ(do_ptrace(0x420a, child, sizeof mask, (unsigned long)&mask), 0);
    CHECK_EQ(mask & both, both);
    CHECK_ERRNO(do_ptrace(0x420a, child, 4, (unsigned long)&mask), EINVAL);
    struct peek peek = {0, 0, 4};
    siginfo_t found[4];
    CHECK_EQ(do_ptrace(0x4209, child, (unsigned long)&peek, (unsigned long)found), 2);
    CHECK_EQ(found[0].si_signo, SIGUSR1);
    CHECK_EQ(found[1].si_signo, SIGUSR2);
    peek.from = 1;
    CHECK_EQ(do_ptrace(0x4209, child, (unsigned long)&peek, (unsigned long)found), 1);
    CHECK_EQ(found[0].si_signo, SIGUSR2);
    peek.flags = 1;  // of the process
    peek.from = 0;
    CHECK_EQ(do_ptrace(0x4209, child, (unsigned long)&peek, (unsigned long)found), 0);
    // What is not blocked any more comes.
    mask &= ~(1UL << (SIGUSR2 - 1));
    CHECK_EQ(do_ptrace(0x420b, child, sizeof mask, (unsigned long)&mask), 0);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGUSR2, 0));
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, 0);

    child = traced_child(faults);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGSEGV, 0));
    CHECK_EQ(ptrace(PTRACE_GETSIGINFO, child, 0, &info), 0);
    CHECK_EQ((long)info.si_addr, 16);
    CHECK_EQ(info.si_code, SEGV_MAPERR);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, SIGSEGV), 0);
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    return guest_passed();
}
