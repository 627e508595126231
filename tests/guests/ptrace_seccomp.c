// A filter of the tracee's own lets its tracer decide.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "ptrace.h"

static void filtered(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | 0x123),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
    _exit(syscall(SYS_getppid) == 4711 ? 7 : 8);
}

int main(void) {
    pid_t child = traced_child(filtered);
    CHECK_EQ(ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESECCOMP), 0);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGTRAP, PTRACE_EVENT_SECCOMP));
    unsigned long message = 0;
    CHECK_EQ(ptrace(PTRACE_GETEVENTMSG, child, 0, &message), 0);
    CHECK_EQ(message, 0x123);
    struct user_regs_struct regs;
    CHECK_EQ(ptrace(PTRACE_GETREGS, child, 0, &regs), 0);
    CHECK_EQ(regs.orig_rax, SYS_getppid);
    regs.orig_rax = -1UL;
    regs.rax = 4711;
    CHECK_EQ(ptrace(PTRACE_SETREGS, child, 0, &regs), 0);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, 7 << 8);

    // Without a tracer that wants to know, such calls fail.
    child = traced_child(filtered);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, 8 << 8);
    return guest_passed();
}
