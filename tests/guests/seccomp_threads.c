// Who is under a seccomp filter: the thread that installs it, those it makes, its children and what
// they exec, and with TSYNC all threads there are. Also what a filter and the strict mode kill.
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "call_filter.h"
#include "guest.h"

static void deny(int call, unsigned action, unsigned flags) {
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(install(call, action, flags), 0);
}

static int denied(int call) { return syscall(call, 0) == -1 && errno == 42; }

static pthread_barrier_t step;

static void* made_before(void* unused) {
    pthread_barrier_wait(&step);
    CHECK(!denied(SYS_getpgid));  // the other thread's own
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    CHECK(!denied(SYS_getpgid));
    CHECK(denied(SYS_getsid));  // for all
    return NULL;
}

static void* made_after(void* unused) {
    CHECK(denied(SYS_getpgid));
    CHECK(!denied(SYS_getsid));
    return NULL;
}

static void* has_one_of_its_own(void* unused) {
    deny(SYS_getpgid, SECCOMP_RET_ERRNO | 42, SECCOMP_FILTER_FLAG_LOG);
    CHECK(denied(SYS_getpgid));
    pthread_t later;
    CHECK_EQ(pthread_create(&later, NULL, made_after, NULL), 0);
    pthread_join(later, NULL);
    return NULL;
}

static void threads(void) {
    pthread_t before, own;
    pthread_barrier_init(&step, NULL, 2);
    CHECK_EQ(pthread_create(&before, NULL, made_before, NULL), 0);
    CHECK_EQ(pthread_create(&own, NULL, has_one_of_its_own, NULL), 0);
    pthread_join(own, NULL);
    pthread_barrier_wait(&step);
    pthread_barrier_wait(&step);
    CHECK(!denied(SYS_getpgid));
    deny(SYS_getsid, SECCOMP_RET_ERRNO | 42, SECCOMP_FILTER_FLAG_TSYNC);
    CHECK(denied(SYS_getsid));
    pthread_barrier_wait(&step);
    pthread_join(before, NULL);
}

static void* dies_of_it(void* unused) {
    deny(SYS_getpgid, SECCOMP_RET_KILL_THREAD, 0);
    syscall(SYS_getpgid, 0);
    CHECK(0);
    return NULL;
}

static void one_thread_dies(void) {
    pthread_t other;
    CHECK_EQ(pthread_create(&other, NULL, dies_of_it, NULL), 0);
    pthread_join(other, NULL);
    CHECK(syscall(SYS_getpgid, 0) > 0);
}

static int inherited(void) {
    pid_t child = fork();
    if (child == 0) {
        CHECK(denied(SYS_getpgid));
        deny(SYS_getsid, SECCOMP_RET_ERRNO | 42, 0);
        execl("/proc/self/exe", "seccomp_threads", "inherited", NULL);
        _exit(3);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(!denied(SYS_getsid));
    return status;
}

static void in_child(void (*what)(void), int status_expected) {
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        what();
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, status_expected);
}

static void only_thread_dies(void) {
    deny(SYS_getpgid, SECCOMP_RET_KILL_THREAD, 0);
    syscall(SYS_getpgid, 0);
}

static void strict(void) {
    CHECK_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL), 0);
    write(STDOUT_FILENO, "strict\n", 7);
    syscall(SYS_exit, 5);
}

static void too_strict(void) {
    CHECK_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT), 0);
    write(STDOUT_FILENO, "stricter\n", 9);
    syscall(SYS_getpid);
    write(STDOUT_FILENO, "still there\n", 12);
}

int main(int count, char** arguments) {
    if (count > 1) {
        CHECK(denied(SYS_getpgid));
        CHECK(denied(SYS_getsid));
        _exit(4);
    }
    CHECK_ERRNO(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL), EINVAL);
    CHECK_ERRNO(prctl(PR_SET_SECCOMP, 77), EINVAL);
    static struct sock_fprog nothing = {0, NULL};
    nothing.len = (unsigned short)(count - 1);
    CHECK_ERRNO(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &nothing), EINVAL);
    in_child(threads, 0);
    in_child(one_thread_dies, 0);
    in_child(only_thread_dies, SIGSYS);
    in_child(strict, 5 << 8);
    in_child(too_strict, SIGKILL);
    deny(SYS_getpgid, SECCOMP_RET_ERRNO | 42, 0);
    CHECK_EQ(inherited(), 4 << 8);
    return guest_passed();
}
