// The program locks itself in with a seccomp filter that allows what it lists and nothing else, as
// sandboxes do. What is listed works, what is not has the error or the signal that the filter says.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

static volatile int trapped, trapped_calls;
static void on_sys(int number, siginfo_t* info, void* context) {
    trapped = info->si_syscall;
    trapped_calls++;
}

#define ALLOW(call)                                        \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define LOCK_IN(other, action)                                                                \
    {                                                                                         \
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), ALLOW(read),   \
            ALLOW(write), ALLOW(rt_sigreturn), ALLOW(exit_group), ALLOW(mmap), ALLOW(munmap), \
            ALLOW(other), BPF_STMT(BPF_RET | BPF_K, (action))                                 \
    }

static void touch_memory(void) {
    size_t size = 1 << 20;
    unsigned char* at =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    for (size_t i = 0; i < size; i += 512) at[i] = (unsigned char)(i >> 9);
    for (size_t i = 0; i < size; i += 512) CHECK_EQ(at[i], (unsigned char)(i >> 9));
    CHECK_EQ(munmap(at, size), 0);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_sys, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, NULL);
    struct sock_filter with_errno[] = LOCK_IN(seccomp, SECCOMP_RET_ERRNO | 42);
    struct sock_filter with_trap[] = LOCK_IN(getsid, SECCOMP_RET_TRAP);
    struct sock_filter deadly[] = LOCK_IN(getsid, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog programs[] = {{sizeof with_errno / sizeof with_errno[0], with_errno},
                                    {sizeof with_trap / sizeof with_trap[0], with_trap},
                                    {sizeof deadly / sizeof deadly[0], deadly}};
    pid_t own = getpid();
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_ERRNO(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL), EFAULT);
    CHECK_ERRNO(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (void*)16), EFAULT);
    CHECK_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &programs[0]), 0);
    touch_memory();
    CHECK_ERRNO(syscall(SYS_getpgid, own), 42);
    CHECK_ERRNO(syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY), 42);
    CHECK_EQ(trapped_calls, 0);
    // A second filter: the stricter of the two counts.
    CHECK_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &programs[1]), 0);
    touch_memory();
    syscall(SYS_getpgid, own);
    CHECK_EQ(trapped, SYS_getpgid);
    CHECK_EQ(trapped_calls, 1);
    CHECK_ERRNO(syscall(SYS_getsid, 0), 42);
    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &programs[2]);
    CHECK_EQ(trapped, SYS_seccomp);
    CHECK_EQ(write(STDOUT_FILENO, "passed\n", 7), 7);
    syscall(SYS_exit_group, 0);
    return 1;
}
