// clone3 with chosen ids, for processes and threads, and into a cgroup: what it does and refuses.
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

enum { THREAD = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM };

static long start(struct clone_args* arguments, int* pause_ms) {
    long child = syscall(SYS_clone3, arguments, sizeof *arguments);
    if (child != 0) return child;
    usleep((useconds_t)*pause_ms * 1000);
    _exit(getpid() == gettid() && (pid_t)syscall(SYS_getpid) == getpid() ? getpid() % 100 : 255);
}

// An id that is free, or was a moment ago.
static pid_t free_id(void) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    return child;
}

static int run_thread(struct clone_args* arguments, volatile int* seen) {
    long tid;
    register volatile int* at __asm__("r12") = seen;
    // The child's stack is empty: it only stores what it is called and ends.
    __asm__ volatile(
        "syscall\n\t"
        "test %%rax, %%rax\n\t"
        "jnz 1f\n\t"
        "mov $186, %%eax\n\t"  // gettid
        "syscall\n\t"
        "mov %%eax, (%%r12)\n\t"
        "xor %%edi, %%edi\n\t"
        "mov $60, %%eax\n\t"  // exit
        "syscall\n\t"
        "1:"
        : "=a"(tid)
        : "a"(SYS_clone3), "D"(arguments), "S"(sizeof *arguments), "r"(at)
        : "rcx", "r11", "memory");
    return (int)tid;
}

int main(void) {
    int status = 0, at_once = 0, later = 60;
    pid_t wanted = free_id();
    struct clone_args plain = {.exit_signal = SIGCHLD}, with = plain;
    with.set_tid = (uintptr_t)&wanted;
    with.set_tid_size = 1;
    long child = start(&with, &at_once);
    if (child < 0 && errno == EPERM) SKIP("needs CAP_CHECKPOINT_RESTORE");
    CHECK_EQ(child, wanted);
    CHECK_EQ(waitpid(wanted, &status, 0), wanted);
    CHECK_EQ(WEXITSTATUS(status), wanted % 100);
    child = start(&with, &later);  // long enough to be anywhere
    CHECK_EQ(child, wanted);
    CHECK_ERRNO(start(&with, &at_once), EEXIST);
    CHECK_EQ(waitpid(wanted, &status, 0), wanted);
    CHECK_EQ(WEXITSTATUS(status), wanted % 100);

    // A thread.
    static char stack[65536] __attribute__((aligned(16)));
    volatile int seen = 0, gone = 1;
    struct clone_args thread = {.flags = THREAD | CLONE_CHILD_CLEARTID,
                                .stack = (uintptr_t)stack,
                                .stack_size = sizeof stack,
                                .child_tid = (uintptr_t)&gone,
                                .set_tid = (uintptr_t)&wanted,
                                .set_tid_size = 1};
    CHECK_EQ(run_thread(&thread, &seen), wanted);
    while (gone) usleep(1000);
    CHECK_EQ(seen, wanted);

    // What is wrong.
    pid_t ids[40] = {wanted, wanted};
    struct clone_args wrong = with;
    wrong.set_tid_size = 2;  // more than there are namespaces of ids, or than we may
    wrong.set_tid = (uintptr_t)ids;
    CHECK_EQ(start(&wrong, &at_once), -1);
    wrong.set_tid_size = 33;
    CHECK_ERRNO(start(&wrong, &at_once), EINVAL);
    wrong = with, wrong.set_tid = 0;
    CHECK_ERRNO(start(&wrong, &at_once), EINVAL);
    wrong = with, wrong.set_tid_size = 0;
    CHECK_ERRNO(start(&wrong, &at_once), EINVAL);
    wrong = with, wrong.set_tid = 16;
    CHECK_ERRNO(start(&wrong, &at_once), EFAULT);
    ids[0] = -5;
    wrong = with, wrong.set_tid = (uintptr_t)ids;
    CHECK_ERRNO(start(&wrong, &at_once), EINVAL);
    wrong = plain, wrong.flags = 1ULL << 40;
    CHECK_ERRNO(start(&wrong, &at_once), EINVAL);

    // A cgroup: only of the second version, and by a descriptor of it.
    int fd = open("/", O_RDONLY | O_DIRECTORY);
    wrong = plain, wrong.flags = CLONE_INTO_CGROUP, wrong.cgroup = (uint64_t)fd;
    CHECK_ERRNO(start(&wrong, &at_once), EBADF);
    wrong.cgroup = 1000;
    CHECK_ERRNO(start(&wrong, &at_once), EBADF);
    wrong.cgroup = 1ULL << 40;
    CHECK_ERRNO(start(&wrong, &at_once), EINVAL);
    return guest_passed();
}
