// A child of vfork installs a filter, and executes a program that computes under it.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

#define KILL(call)                                         \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static struct sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    KILL(seccomp),
    KILL(get_mempolicy),
    KILL(userfaultfd),
    KILL(memfd_create),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 71),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};

int main(int argc, char** argv) {
    if (argc > 1) {
        guest_compute(300);
        CHECK_ERRNO(syscall(SYS_getppid), 71);
        CHECK_EQ(prctl(PR_GET_SECCOMP, 0, 0, 0, 0), SECCOMP_MODE_FILTER);
        return 7;
    }
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    for (int i = 0; i < 3; i++) {
        volatile long installed = -1;
        const pid_t child = vfork();
        if (child == 0) {
            installed = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
            execl("/proc/self/exe", argv[0], "again", NULL);
            _exit(8);
        }
        int status = -1;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(installed, 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        CHECK(getppid() > 0);
    }
    return guest_passed();
}
