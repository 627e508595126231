// Stops before and after system calls, which the tracer may change or replace.
#include <fcntl.h>
#include <sys/stat.h>

#include "ptrace.h"

#ifndef PTRACE_SYSEMU
#define PTRACE_SYSEMU 31
#define PTRACE_SYSEMU_SINGLESTEP 32
#endif

struct call_info {
    uint8_t op, pad[3];
    uint32_t arch;
    uint64_t instruction_pointer, stack_pointer;
    union {
        struct {
            uint64_t number, args[6];
        } entry;
        struct {
            int64_t result;
            uint8_t is_error;
        } exit;
    };
    char more[64];
};

static void calls(void) {
    const long parent = syscall(SYS_getppid);
    const long number = syscall(SYS_getpriority, 0, 0);
    _exit(parent == 4711 && number == -1 && errno == EBADF ? 21 : 22);
}

static long number_of_call(pid_t child) {
    struct user_regs_struct regs;
    CHECK_EQ(ptrace(PTRACE_GETREGS, child, 0, &regs), 0);
    return (long)regs.orig_rax;
}

static void set_result(pid_t child, long result) {
    struct user_regs_struct regs;
    CHECK_EQ(ptrace(PTRACE_GETREGS, child, 0, &regs), 0);
    regs.rax = (unsigned long)result;
    CHECK_EQ(ptrace(PTRACE_SETREGS, child, 0, &regs), 0);
}

// Until the child is about to make this call.
static void to_call(pid_t child, long request, long number, int stop) {
    for (;;) {
        CHECK_EQ(do_ptrace(request, child, 0, 0), 0);
        CHECK_WAIT(child, STOPPED(stop, 0));
        if (number_of_call(child) == number) return;
    }
}

static void changes_results(void) {
    pid_t child = traced_child(calls);
    const int stop = SIGTRAP | 0x80;
    CHECK_EQ(ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD), 0);
    to_call(child, PTRACE_SYSCALL, SYS_getppid, stop);
    struct call_info info = {0};
    long size = do_ptrace(0x420e, child, sizeof info, (unsigned long)&info);
    CHECK(size >= 24 + 56);
    CHECK_EQ(info.op, 1);
    CHECK_EQ(info.entry.number, SYS_getppid);
    CHECK_EQ(ptrace(PTRACE_SYSCALL, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(stop, 0));
    CHECK_EQ(do_ptrace(0x420e, child, sizeof info, (unsigned long)&info), 33);
    CHECK_EQ(info.op, 2);
    CHECK_EQ(info.exit.result, getpid());
    CHECK_EQ(info.exit.is_error, 0);
    siginfo_t about;
    CHECK_EQ(ptrace(PTRACE_GETSIGINFO, child, 0, &about), 0);
    CHECK_EQ(about.si_code, stop);
    set_result(child, 4711);
    to_call(child, PTRACE_SYSCALL, SYS_getpriority, stop);
    CHECK_EQ(ptrace(PTRACE_SYSCALL, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(stop, 0));
    set_result(child, -EBADF);
    to_call(child, PTRACE_SYSCALL, SYS_exit_group, stop);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, 21 << 8);
}

static void without_good(void) {
    pid_t child = traced_child(calls);
    to_call(child, PTRACE_SYSCALL, SYS_getppid, SIGTRAP);
    siginfo_t about;
    CHECK_EQ(ptrace(PTRACE_GETSIGINFO, child, 0, &about), 0);
    CHECK_EQ(about.si_signo, SIGTRAP);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, 22 << 8);
}

// The tracer makes all calls.
static void emulates(void) {
    pid_t child = traced_child(calls);
    to_call(child, PTRACE_SYSEMU, SYS_getppid, SIGTRAP);
    set_result(child, 4711);
    to_call(child, PTRACE_SYSEMU, SYS_getpriority, SIGTRAP);
    set_result(child, -EBADF);
    to_call(child, PTRACE_SYSEMU_SINGLESTEP, SYS_exit_group, SIGTRAP);
    CHECK_EQ(ptrace(PTRACE_KILL, child, 0, 0), 0);
    CHECK_WAIT(child, SIGKILL);
}

// The number is changed before the call is made.
static void replaces(void) {
    pid_t child = traced_child(calls);
    to_call(child, PTRACE_SYSCALL, SYS_getppid, SIGTRAP);
    struct user_regs_struct regs;
    CHECK_EQ(ptrace(PTRACE_GETREGS, child, 0, &regs), 0);
    CHECK_EQ((long)regs.rax, -ENOSYS);
    regs.orig_rax = SYS_exit_group;
    regs.rdi = 77;
    CHECK_EQ(ptrace(PTRACE_SETREGS, child, 0, &regs), 0);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, 77 << 8);
}

// Every call is stopped at, also those that gpr looks at.
static void many(void) {
    close(open("/etc/hostname", 0));
    access("/nowhere", 0);
    waitpid(-1, NULL, WNOHANG);
    struct stat about;
    stat("/", &about);
}

static void order_of_calls(void) {
    pid_t child = traced_child(many);
    CHECK_EQ(ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD), 0);
    int status = 0;
    for (int stops = 0;; stops++) {
        CHECK_EQ(ptrace(PTRACE_SYSCALL, child, 0, 0), 0);
        CHECK_EQ(waitpid(child, &status, 0), child);
        if (WIFEXITED(status)) break;
        CHECK_EQ(status, STOPPED(SIGTRAP | 0x80, 0));
        if (stops < 1) continue;  // the end of the call that stopped it
        struct call_info info = {0};
        CHECK(do_ptrace(0x420e, child, sizeof info, (unsigned long)&info) > 0);
        if (info.op == 1) printf("call %d\n", (int)info.entry.number);
        if (info.op == 2) printf("  is %d\n", (int)info.exit.result);
    }
    CHECK_EQ(status, 0);
}

int main(void) {
    changes_results();
    without_good();
    emulates();
    replaces();
    order_of_calls();
    return guest_passed();
}
