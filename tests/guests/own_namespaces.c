// Processes in a namespace of ids, or of time, of their own: what they and their parents are told.
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "guest.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static volatile int* shared;

static void compute_ms(int ms) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

static void* look_in_thread(void* unused) {
    CHECK_EQ(getpid(), 1);
    CHECK(gettid() > 1 && gettid() < 10);
    for (int i = 0; i < 1000; i++) __atomic_add_fetch(shared, 1, __ATOMIC_SEQ_CST);
    return unused;
}

// As the first process there.
static int be_first(void) {
    int status = 0;
    for (int round = 0; round < 2; round++) {
        CHECK_EQ(getpid(), 1);
        CHECK_EQ(gettid(), 1);
        CHECK_EQ(getppid(), 0);
        compute_ms(50);  // not young any more
    }
    pid_t child = fork();
    if (child == 0) {
        compute_ms(50);
        CHECK_EQ(getppid(), 1);
        _exit(getpid());
    }
    CHECK_EQ(child, 2);
    CHECK_EQ(wait(&status), 2);
    CHECK_EQ(WEXITSTATUS(status), 2);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, look_in_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_ERRNO(kill(77777, 0), ESRCH);
    return 41;
}

static int be_guest(void* unused) {
    (void)unused;
    return getpid() == 1 && getppid() == 0 ? 45 : 46;
}

static pid_t start(uint64_t flags) {
    struct clone_args arguments = {.flags = flags, .exit_signal = SIGCHLD};
    return (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
}

static void expect(pid_t child, int code) {
    int status = 0;
    CHECK(child > 1);
    for (int i = 0; i < 1000; i++) __atomic_add_fetch(shared, 1, __ATOMIC_SEQ_CST);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), code);
}

static long long seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static void try_time(void) {
    long long before = seconds();
    if (unshare(CLONE_NEWTIME) != 0) {
        CHECK(errno == EINVAL || errno == EPERM);
        return;
    }
    int fd = open("/proc/self/timens_offsets", O_WRONLY);
    CHECK(fd >= 0);
    CHECK(write(fd, "monotonic 100000 0\n", 19) > 0);
    close(fd);
    CHECK(seconds() - before < 1000);  // for children only
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 2; i++) {
            CHECK(seconds() - before >= 100000);
            usleep(50000);
        }
        _exit(42);
    }
    expect(child, 42);
    child = start(CLONE_NEWTIME);  // with the same offsets
    if (child == 0) {
        usleep(50000);
        CHECK(seconds() - before >= 100000);
        _exit(43);
    }
    expect(child, 43);
}

int main(int argc, char** argv) {
    if (argc > 1) {  // executed there
        CHECK_EQ(getpid(), 1);
        compute_ms(50);
        CHECK_EQ(getpid(), 1);
        return 44;
    }
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = start(CLONE_NEWPID);
    if (child < 0 && errno == EPERM) SKIP("needs CAP_SYS_ADMIN");
    if (child == 0) _exit(be_first());
    expect(child, 41);
    static char stack[65536] __attribute__((aligned(16)));
    expect(clone(be_guest, stack + sizeof stack, CLONE_NEWPID | CLONE_VFORK | CLONE_VM | SIGCHLD,
                 NULL),
           45);
    child = start(CLONE_NEWPID);
    if (child == 0) {
        char* next[] = {argv[0], "there", NULL};
        execv("/proc/self/exe", next);
        _exit(1);
    }
    expect(child, 44);
    try_time();
    CHECK_EQ(unshare(CLONE_NEWPID), 0);
    CHECK(getpid() > 1);
    child = fork();
    if (child == 0) _exit(be_first());
    expect(child, 41);
    CHECK_ERRNO(fork(), ENOMEM);  // its first process has ended
    printf("shared: %d\n", *shared);
    return guest_passed();
}
