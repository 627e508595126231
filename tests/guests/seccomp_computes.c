// Programs that computed under seccomp filters: one after the other, in threads and in children.
// Whatever the filters do not list ends the process at once.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

#define LIST(call)                                         \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define ANSWER(call, error)                                \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##call, 0, 1), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define NUMBER BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
#define OTHERS(action) BPF_STMT(BPF_RET | BPF_K, (action))

// What a C library needs for the rest of this program, but little of what memory needs.
static struct sock_filter narrow[] = {NUMBER,
                                      LIST(write),
                                      LIST(read),
                                      LIST(exit),
                                      LIST(exit_group),
                                      LIST(clock_gettime),
                                      LIST(clock_nanosleep),
                                      LIST(clone),
                                      LIST(clone3),
                                      LIST(wait4),
                                      LIST(rt_sigreturn),
                                      LIST(rt_sigprocmask),
                                      LIST(rt_sigaction),
                                      LIST(futex),
                                      LIST(seccomp),
                                      LIST(prctl),
                                      LIST(getpid),
                                      LIST(gettid),
                                      LIST(set_robust_list),
                                      LIST(rseq),
                                      LIST(mmap),
                                      LIST(mprotect),
                                      LIST(munmap),
                                      LIST(madvise),
                                      LIST(newfstatat),
                                      LIST(fstat),
                                      LIST(getsid),
                                      LIST(getrandom),
                                      LIST(brk),
                                      ANSWER(getppid, 71),
                                      OTHERS(SECCOMP_RET_KILL_PROCESS)};
static struct sock_filter without_sid[] = {NUMBER, ANSWER(getsid, 72), OTHERS(SECCOMP_RET_ALLOW)};
static struct sock_filter without_memory[] = {NUMBER,
                                              BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 3, 0),
                                              BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 2, 0),
                                              BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 1, 0),
                                              OTHERS(SECCOMP_RET_ALLOW),
                                              OTHERS(SECCOMP_RET_KILL_PROCESS)};

static void install(struct sock_filter* code, size_t bytes, unsigned flags) {
    struct sock_fprog program = {(unsigned short)(bytes / sizeof *code), code};
    CHECK_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program), 0);
}

static volatile int go_on;

static void* compute(void* unused) {
    (void)unused;
    while (!go_on) guest_compute(20);
    CHECK_ERRNO(syscall(SYS_getppid), 71);
    CHECK_ERRNO(syscall(SYS_getsid, 0), 72);
    return NULL;
}

static void in_child(void) {
    install(without_memory, sizeof without_memory, 0);
    guest_compute(300);
    for (int i = 0; i < 20; i++) {
        CHECK_ERRNO(syscall(SYS_getppid), 71);
        usleep(5000);
    }
    CHECK_ERRNO(syscall(SYS_getsid, 0), 72);
    _exit(7);
}

int main(void) {
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, compute, NULL), 0);
    install(narrow, sizeof narrow, SECCOMP_FILTER_FLAG_TSYNC);
    CHECK_ERRNO(syscall(SYS_getppid), 71);
    CHECK(syscall(SYS_getsid, 0) >= 0);
    guest_compute(250);
    CHECK_ERRNO(syscall(SYS_getppid), 71);
    install(without_sid, sizeof without_sid, SECCOMP_FILTER_FLAG_TSYNC);
    CHECK_EQ(prctl(PR_GET_SECCOMP, 0, 0, 0, 0), SECCOMP_MODE_FILTER);
    go_on = 1;
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_ERRNO(syscall(SYS_getsid, 0), 72);
    const pid_t child = fork();
    if (child == 0) in_child();
    guest_compute(100);
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    // What is not listed.
    const pid_t other = fork();
    if (other == 0) {
        guest_compute(150);
        syscall(SYS_getpgid, 0);
        _exit(0);
    }
    CHECK_EQ(waitpid(other, &status, 0), other);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
    return guest_passed();
}
