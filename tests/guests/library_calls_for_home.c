// System calls that are made from the text of a library and can be made in one place only, wherever
// the library runs: those on shared memory that nobody has touched, and locks with priority
// inheritance. Waits are ended by others, by their time, and not by a signal that is ignored.
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"
#include "libgprguest.h"

enum { PAGE = 4096, PAGES = 64 };
static char* shared;
static int next_page;

// One that neither node has seen.
static void* untouched(void) {
    CHECK(next_page < PAGES);
    return shared + PAGE * next_page++;
}

static long call(long number, long a, long b, long c, long d, long e, long f) {
    const long arguments[6] = {a, b, c, d, e, f};
    return remote_syscall(number, arguments);
}

static long futex(uint32_t* word, long operation, long value, const struct timespec* time) {
    return call(SYS_futex, (long)word, operation, value, (long)time, 0, 0);
}

static void buffers(void) {
    int fd = open("out", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(call(SYS_write, fd, (long)untouched(), 100, 0, 0, 0), 100);
    CHECK_EQ(pwrite(fd, "seen", 4, 0), 4);
    char* page = untouched();
    CHECK_EQ(call(SYS_pread64, fd, (long)page, PAGE, 0, 0, 0), 100);
    CHECK(memcmp(page, "seen", 5) == 0);
    page = untouched();
    struct {
        char* base;
        size_t size;
    } parts[2] = {{page + 10, 2}, {page + 20, 2}};
    CHECK_EQ(call(SYS_preadv, fd, (long)parts, 2, 0, 0, 0), 4);
    CHECK(memcmp(page + 20, "en", 3) == 0);
    char path[] = "/proc/self/cwd/linked";
    char* name = untouched();
    CHECK_EQ(symlink("aim", path), 0);
    CHECK_EQ(call(SYS_readlink, (long)path, (long)name, 10, 0, 0, 0), 3);
    CHECK(memcmp(name, "aim", 4) == 0);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(close(fd), 0);
    printf("buffers\n");
}

static void* wake_it(void* word) {
    usleep(30000);
    __atomic_store_n((uint32_t*)word, 1, __ATOMIC_SEQ_CST);
    while (syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0) != 1) usleep(1000);
    return NULL;
}

static void futexes(void) {
    const struct timespec soon = {0, 20000000};
    CHECK_EQ(futex(untouched(), FUTEX_WAKE, 1, NULL), 0);
    CHECK_EQ(futex(untouched(), FUTEX_WAIT, 5, NULL), -EAGAIN);
    CHECK_EQ(futex(untouched(), FUTEX_WAIT, 0, &soon), -ETIMEDOUT);
    uint32_t* word = untouched();
    pthread_t waker;
    CHECK_EQ(pthread_create(&waker, NULL, wake_it, word), 0);
    while (*word == 0) {
        long result = futex(word, FUTEX_WAIT, 0, NULL);
        CHECK(result == 0 || result == -EAGAIN);
    }
    CHECK_EQ(pthread_join(waker, NULL), 0);
    word = untouched();
    pid_t pid = fork();
    if (pid == 0) _exit(wake_it(word) != NULL);
    while (__atomic_load_n(word, __ATOMIC_SEQ_CST) == 0) {
        long result = futex(word, FUTEX_WAIT, 0, NULL);
        CHECK(result == 0 || result == -EAGAIN);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    printf("futexes\n");
}

// Signals that are ignored, and a stop, come while it waits.
static void ignored_signals(void) {
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 10; i++) {
            usleep(15000);
            kill(parent, i == 5 ? SIGSTOP : SIGWINCH);
            if (i != 5) continue;
            usleep(15000);
            kill(parent, SIGCONT);
        }
        _exit(0);
    }
    const struct timespec later = {0, 400000000};
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    CHECK_EQ(futex(untouched(), FUTEX_WAIT, 0, &later), -ETIMEDOUT);
    clock_gettime(CLOCK_MONOTONIC, &end);
    long ms = (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;
    CHECK(ms >= 399);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    printf("ignored signals\n");
}

static void on_signal(int signal) { (void)signal; }

static void handled_signals(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    const struct timespec never = {1000, 0};
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        usleep(50000);
        kill(parent, SIGUSR1);
        _exit(0);
    }
    CHECK_EQ(futex(untouched(), FUTEX_WAIT, 0, &never), -EINTR);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    printf("handled signals\n");
}

static uint32_t lock;
static int locked;

static void* hold_lock(void* unused) {
    CHECK_EQ(syscall(SYS_futex, &lock, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0), 0);
    __atomic_store_n(&locked, 1, __ATOMIC_SEQ_CST);
    usleep(30000);
    CHECK_EQ(syscall(SYS_futex, &lock, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0), 0);
    return unused;
}

static void inheritance(void) {
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;
    CHECK_EQ(pthread_mutexattr_init(&attributes), 0);
    CHECK_EQ(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT), 0);
    CHECK_EQ(pthread_mutex_init(&mutex, &attributes), 0);
    long count = 0;
    remote_locked_add(&mutex, &count, 3);
    CHECK_EQ(count, 3);
    CHECK_EQ(pthread_mutex_destroy(&mutex), 0);

    CHECK_EQ(futex(&lock, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL), -EPERM);
    CHECK_EQ(futex(&lock, FUTEX_LOCK_PI_PRIVATE, 0, NULL), 0);
    CHECK_EQ(futex(&lock, FUTEX_TRYLOCK_PI_PRIVATE, 0, NULL), -EDEADLK);
    CHECK_EQ(futex(&lock, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL), 0);
    CHECK_EQ(lock, 0);
    for (int i = 0; i < 3; i++) {
        pthread_t holder;
        locked = 0;
        CHECK_EQ(pthread_create(&holder, NULL, hold_lock, NULL), 0);
        while (!__atomic_load_n(&locked, __ATOMIC_SEQ_CST)) usleep(1000);
        CHECK_EQ(futex(&lock, FUTEX_LOCK_PI_PRIVATE, 0, NULL), 0);
        CHECK_EQ(lock & FUTEX_TID_MASK, syscall(SYS_gettid));
        CHECK_EQ(futex(&lock, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL), 0);
        CHECK_EQ(pthread_join(holder, NULL), 0);
    }
    printf("priority inheritance\n");
}

int main(void) {
    shared = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    buffers();
    futexes();
    ignored_signals();
    handled_signals();
    inheritance();
    return guest_passed();
}
