// seccomp(2), SECCOMP_FILTER_FLAG_TSYNC of a thread that has filters of its own: the others, who
// have none, get them all; who has others keeps the call from succeeding.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

static long deny(int call, unsigned flags) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 42),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static int denied(int call) { return syscall(call, 0) == -1 && errno == 42; }

static pthread_barrier_t step;
static pid_t other_tid;

static void* only_has_these(void* unused) {
    (void)unused;
    CHECK(denied(SYS_getpgid) && denied(SYS_getsid) && denied(SYS_getppid));
    CHECK_EQ(deny(SYS_sched_yield, 0), 0);
    CHECK(denied(SYS_sched_yield));
    return NULL;
}

static void* made_before(void* unused) {
    (void)unused;
    CHECK(!denied(SYS_getpgid));
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    CHECK(denied(SYS_getpgid) && denied(SYS_getsid) && denied(SYS_getppid));
    pthread_t later;
    CHECK_EQ(pthread_create(&later, NULL, only_has_these, NULL), 0);
    CHECK_EQ(pthread_join(later, NULL), 0);
    CHECK(!denied(SYS_sched_yield));
    return NULL;
}

static void* has_its_own(void* unused) {
    (void)unused;
    CHECK_EQ(deny(SYS_getpgid, 0), 0);
    other_tid = (pid_t)syscall(SYS_gettid);
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    CHECK(denied(SYS_getpgid));
    CHECK(!denied(SYS_getsid) && !denied(SYS_getppid));
    return NULL;
}

static void share(void) {
    pthread_t before;
    pthread_barrier_init(&step, NULL, 2);
    CHECK_EQ(pthread_create(&before, NULL, made_before, NULL), 0);
    pthread_barrier_wait(&step);
    CHECK_EQ(deny(SYS_getpgid, 0), 0);
    CHECK_EQ(deny(SYS_getsid, 0), 0);
    CHECK_EQ(deny(SYS_getppid, SECCOMP_FILTER_FLAG_TSYNC), 0);
    CHECK(denied(SYS_getpgid) && denied(SYS_getsid) && denied(SYS_getppid));
    pthread_barrier_wait(&step);
    CHECK_EQ(pthread_join(before, NULL), 0);
    CHECK_EQ(deny(SYS_getuid, SECCOMP_FILTER_FLAG_TSYNC), 0);
    CHECK(denied(SYS_getuid));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        only_has_these(NULL);
        _exit(denied(SYS_getuid) ? 0 : 1);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

static void is_refused(void) {
    pthread_t other;
    pthread_barrier_init(&step, NULL, 2);
    CHECK_EQ(pthread_create(&other, NULL, has_its_own, NULL), 0);
    pthread_barrier_wait(&step);
    CHECK_EQ(deny(SYS_getsid, 0), 0);
    CHECK_EQ(deny(SYS_getppid, SECCOMP_FILTER_FLAG_TSYNC), other_tid);
    CHECK(denied(SYS_getsid));
    CHECK(!denied(SYS_getpgid) && !denied(SYS_getppid));
    pthread_barrier_wait(&step);
    CHECK_EQ(pthread_join(other, NULL), 0);
    CHECK_EQ(deny(SYS_getppid, SECCOMP_FILTER_FLAG_TSYNC), 0);
    CHECK(denied(SYS_getppid));
}

static void in_child(void (*what)(void)) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        what();
        _exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

int main(void) {
    in_child(share);
    in_child(is_refused);
    share();
    return guest_passed();
}
