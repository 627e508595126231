// Calls that do not wait are never interrupted, although a handler without SA_RESTART runs again
// and again: signal(7) lists which calls fail with EINTR, and these are not among them.
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"

enum { interval_us = 5000, ms = 1200, size = 3 * 4096 };

static volatile sig_atomic_t handled;

static void handle(int signal) {
    (void)signal;
    handled++;
}

static int64_t now_ms(void) {
    struct timespec t;
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &t), 0);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static void* nothing(void* unused) { return unused; }

static void change_memory(void) {
    char* at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    at[0] = 1;
    CHECK_EQ(mprotect(at, size, PROT_READ), 0);
    CHECK_EQ(madvise(at, size, MADV_DONTNEED), 0);
    char* moved = mremap(at, size, 2 * size, MREMAP_MAYMOVE);
    CHECK(moved != MAP_FAILED);
    CHECK_EQ(munmap(moved, 2 * size), 0);
}

static void use_descriptors(void) {
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    const int copy = dup(ends[0]);
    CHECK(copy >= 0);
    CHECK_EQ(fcntl(copy, F_SETFD, FD_CLOEXEC), 0);
    CHECK_EQ(close(copy), 0);
    CHECK_EQ(close(ends[0]), 0);
    CHECK_EQ(close(ends[1]), 0);
    const int null = open("/dev/null", O_RDWR);
    CHECK(null >= 0);
    CHECK_EQ(close(null), 0);
}

static void wake_and_set(void) {
    static int word;
    CHECK_EQ(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0), 0);
    CHECK_EQ(syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0), 0);
    struct sigaction action;
    CHECK_EQ(sigaction(SIGUSR1, NULL, &action), 0);
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    sigset_t usr2;
    sigemptyset(&usr2);
    sigaddset(&usr2, SIGUSR2);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &usr2, NULL), 0);
    CHECK_EQ(sigprocmask(SIG_UNBLOCK, &usr2, NULL), 0);
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK(getpid() > 0);
}

// One that does wait: for the other end of a FIFO.
static void wait_for_writer(void) {
    CHECK_EQ(mkfifo("fifo", 0600), 0);
    for (int i = 0; i < 3; i++) CHECK_ERRNO(open("fifo", O_RDONLY), EINTR);
    CHECK_EQ(unlink("fifo"), 0);
}

int main(void) {
    struct sigaction action = {0};
    action.sa_handler = handle;
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    const struct itimerval often = {{0, interval_us}, {0, interval_us}}, never = {0};
    CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
    const int64_t end = now_ms() + ms;
    while (now_ms() < end || handled < 10) {
        for (int i = 0; i < 10; i++) {
            change_memory();
            use_descriptors();
            wake_and_set();
        }
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, nothing, NULL), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    wait_for_writer();
    CHECK_EQ(setitimer(ITIMER_REAL, &never, NULL), 0);
    return guest_passed();
}
