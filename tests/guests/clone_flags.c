// Raw clone and clone3 with flags that do not go together, and with those that only look so.
#include <linux/sched.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

static int tid_here, pidfd_here;
static long no_tls[64];

// The child, which may share this stack, ends without touching it.
static long raw(long number, unsigned long a, unsigned long b, void* c, void* d, unsigned long e) {
    long result = number;
    register void* r10 __asm__("r10") = d;
    register unsigned long r8 __asm__("r8") = e;
    __asm__ volatile(
        "syscall\n\t"
        "test %%rax, %%rax\n\t"
        "jnz 1f\n\t"
        "xor %%edi, %%edi\n\t"
        "mov $60, %%eax\n\t"  // exit
        "syscall\n\t"
        "1:"
        : "+a"(result)
        : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
        : "rcx", "r11", "memory");
    return result;
}

static long await(long result, unsigned long flags) {
    if (result <= 0) return result;
    if (flags & CLONE_PIDFD) CHECK_EQ(close(pidfd_here), 0);
    if (flags & CLONE_THREAD) {
        while (syscall(SYS_tgkill, getpid(), (pid_t)result, 0) == 0) usleep(200);
    } else if (flags & CLONE_PARENT) {
        CHECK_ERRNO(waitpid((pid_t)result, NULL, __WALL), ECHILD);
    } else {
        int status = -1;
        CHECK_EQ(waitpid((pid_t)result, &status, __WALL), result);
        CHECK_EQ(status, 0);
    }
    return 1;
}

static long clone_with(unsigned long flags, unsigned long tls) {
    int only_pidfd = (flags & CLONE_PIDFD) && !(flags & CLONE_PARENT_SETTID);
    long result = raw(SYS_clone, flags, 0, only_pidfd ? &pidfd_here : &tid_here, &no_tls[32], tls);
    return await(result, flags);
}

static long clone3_with(unsigned long flags, unsigned long signal) {
    struct clone_args args = {.flags = flags, .exit_signal = signal};
    args.pidfd = (uintptr_t)&pidfd_here;
    args.parent_tid = (uintptr_t)&tid_here;
    args.child_tid = (uintptr_t)&no_tls[32];
    args.tls = (uintptr_t)no_tls;
    return await(raw(SYS_clone3, (uintptr_t)&args, sizeof args, NULL, NULL, 0), flags);
}

static void try(const char* what, unsigned long flags) {
    printf("%s %#lx: clone %ld", what, flags, clone_with(flags, (uintptr_t)no_tls));
    printf(", clone3 %ld %ld\n", clone3_with(flags & ~0xfful, flags & 0xff),
           clone3_with(flags & ~0xfful, 0));
}

static const unsigned long all[] = {
    CLONE_VM,       CLONE_FS,      CLONE_FILES,         CLONE_SIGHAND,
    CLONE_PIDFD,    CLONE_VFORK,   CLONE_THREAD,        CLONE_NEWNS,
    CLONE_SETTLS,   CLONE_IO,      CLONE_NEWIPC,        CLONE_NEWPID,
    CLONE_NEWUSER,  CLONE_NEWUTS,  CLONE_PARENT_SETTID, CLONE_CHILD_CLEARTID,
    CLONE_DETACHED, CLONE_SYSVSEM, CLONE_UNTRACED,
};
enum { ALL = sizeof all / sizeof all[0] };

// Who is older than some 30 ms may be in two places.
static void as_sibling(void) {
    int told[2];
    CHECK_EQ(pipe(told), 0);
    pid_t child = fork();
    if (child == 0) {
        usleep(80000);
        static const unsigned long with[] = {0,
                                             SIGCHLD,
                                             SIGUSR1,
                                             CLONE_FS,
                                             CLONE_PIDFD | SIGCHLD,
                                             CLONE_DETACHED,
                                             CLONE_VM | CLONE_VFORK | SIGCHLD};
        for (size_t i = 0; i < sizeof with / sizeof with[0]; i++)
            try("sibling", CLONE_PARENT | with[i]);
        fflush(stdout);
        _exit(7);
    }
    int status = 0, children = 0, sevens = 0;
    while (waitpid(-1, &status, __WALL) > 0) {
        children++;
        sevens += WIFEXITED(status) && WEXITSTATUS(status) == 7;
    }
    printf("%d children\n", children);
    CHECK_EQ(sevens, 1);
}

int main(void) {
    signal(SIGUSR1, SIG_IGN);
    volatile double eight = 8;
    CHECK(cbrt(eight) == 2);
    as_sibling();
    try("every flag", 0xffffffff);
    try("no exit signal", CLONE_FS | 0);
    try("a signal that is none", CLONE_FS | 0xff);
    try("the highest signal", CLONE_FS | 65);
    for (int i = 0; i < ALL; i++) {
        try("with SIGCHLD", all[i] | SIGCHLD);
        for (int j = i + 1; j < ALL; j++) {
            unsigned long namespaces =
                CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWUSER | CLONE_NEWUTS;
            // Those are many, and each is expensive.
            if ((all[i] & namespaces) && (all[j] & namespaces)) continue;
            long result = clone_with(all[i] | all[j] | SIGCHLD, (uintptr_t)no_tls);
            if (result <= 0) printf("%#lx with %#lx: %ld\n", all[i], all[j], result);
        }
        unsigned long thread = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD;
        try("a thread", thread | all[i]);
        try("an ordinary thread", thread | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | all[i]);
    }
    printf("bad TLS: %ld\n", clone_with(CLONE_SETTLS | SIGCHLD, 0xffff800000000000));
    printf("a thread's: %ld\n",
           clone_with(CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_SETTLS, 0xffff800000000000));
    // The kernel looks at the lower half only.
    printf("junk above: %ld\n", clone_with(0xdeadbeef00000000 | SIGCHLD, 0));
    struct clone_args stack = {.stack = 0xffff800000000000, .stack_size = 4096};
    printf("bad stack: %ld\n", raw(SYS_clone3, (uintptr_t)&stack, sizeof stack, NULL, NULL, 0));
    stack.stack = (uintptr_t)no_tls, stack.stack_size = UINT64_MAX;
    printf("long stack: %ld\n", raw(SYS_clone3, (uintptr_t)&stack, sizeof stack, NULL, NULL, 0));
    return guest_passed();
}
