// The program installs a seccomp filter of its own: an errno, a trap and a death by SIGSYS.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

static volatile int trapped;
static void on_sys(int number, siginfo_t* info, void* context) { trapped = info->si_syscall; }

#define DENY(call, action) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), BPF_STMT(BPF_RET | BPF_K, (action))

int main(void) {
    struct sigaction action = {.sa_sigaction = on_sys, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, NULL);
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        DENY(SYS_getpgrp, SECCOMP_RET_ERRNO | 42),
        DENY(SYS_getsid, SECCOMP_RET_TRAP),
        DENY(SYS_personality, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    CHECK_EQ(prctl(PR_GET_SECCOMP), 0);
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        CHECK_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), 0);
        CHECK_ERRNO(syscall(SYS_getpgrp), 42);
        syscall(SYS_getsid, 0);
        CHECK_EQ(trapped, SYS_getsid);
        CHECK_EQ(prctl(PR_GET_SECCOMP), 2);
        CHECK(syscall(SYS_getppid) > 0);
        syscall(SYS_personality, 0xffffffff);
        _exit(1);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
    return guest_passed();
}
