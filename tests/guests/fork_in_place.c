// Children of a process with so much memory that a fork leaves it where it is. What the kernel does
// to a child's memory holds there, too: wiped and absent ranges, ids that it writes, shared memory;
// and a child may do all that its parent may: fork, exec, have threads, change its address space.
#include <linux/sched.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

#define PAGE 4096UL
#define PAGES (32 * 256UL)  // 32 MiB, all of it touched

static uint64_t* memory;
static uint64_t* wiped;
static uint64_t* absent;
static uint64_t* shared;
static char* moved;
static int handled;
static sigjmp_buf out_of_fault;

static uint64_t* page(size_t i) { return memory + i * PAGE / 8; }

static void fill(uint64_t seed) {
    for (size_t i = 0; i < PAGES; i++) *page(i) = seed + i;
}

static int is_filled(uint64_t seed) {
    for (size_t i = 0; i < PAGES; i++) {
        if (*page(i) != seed + i) return 0;
    }
    return 1;
}

static int status_of(pid_t child) {
    int status = 0;
    CHECK(child > 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    return status;
}

static void on_segv(int signal) {
    (void)signal;
    siglongjmp(out_of_fault, 1);
}

static void on_usr1(int signal) {
    (void)signal;
    handled++;
}

static int is_absent(volatile uint64_t* at) {
    signal(SIGSEGV, on_segv);
    if (sigsetjmp(out_of_fault, 1)) return 1;
    return *at == 12345 && 0;
}

static void* write_in_thread(void* seed) {
    fill((uint64_t)(uintptr_t)seed);
    return NULL;
}

// What only the kernel's own rules for a child decide.
static int advice_holds(void) {
    for (size_t i = 0; i < 16; i++) {
        if (wiped[i * PAGE / 8] != 0) return 0;
    }
    wiped[PAGE / 8] = 5;
    return wiped[PAGE / 8] == 5 && wiped[2 * PAGE / 8] == 0 && is_absent(absent);
}

static int child_does_everything(void) {
    pthread_t thread;
    if (!is_filled(1000) || !advice_holds()) return 1;
    if (*shared != 77) return 2;
    *shared = 78;
    kill(getpid(), SIGUSR1);
    if (handled != 1) return 3;
    fill(2000);
    pid_t grandchild = fork();  // a copy of a copy
    if (grandchild == 0) {
        if (!is_filled(2000)) _exit(1);
        fill(3000);
        _exit(is_filled(3000) ? 0 : 2);
    }
    *page(5) = 2005;
    if (status_of(grandchild) != 0 || !is_filled(2000)) return 4;
    if (pthread_create(&thread, NULL, write_in_thread, (void*)4000UL) != 0) return 5;
    if (pthread_join(thread, NULL) != 0 || !is_filled(4000)) return 6;
    if (munmap(moved, 4 * PAGE) != 0 || madvise(page(16), 16 * PAGE, MADV_DONTNEED) != 0) return 7;
    if (*page(17) != 0 || *page(40) != 4040) return 8;
    char* more = malloc(1 << 20);
    memset(more, 1, 1 << 20);
    free(more);
    return 0;
}

static void test_everything(void) {
    fill(1000);
    pid_t child = fork();
    if (child == 0) _exit(child_does_everything());
    for (size_t i = 0; i < PAGES; i += 2) *page(i) = 9;  // the child does not see it
    CHECK_EQ(status_of(child), 0);
    CHECK_EQ(*shared, 78);
    CHECK_EQ(wiped[0], 42);
    CHECK_EQ(absent[0], 43);
    CHECK_EQ(moved[0], 'm');
    CHECK_EQ(handled, 0);
}

// Its first system call, or its end, comes before it is anything but a copy.
static void test_short_lives(void) {
    for (int i = 0; i < 6; i++) {
        pid_t child = fork();
        if (child == 0 && i % 3 == 0) _exit(i);
        if (child == 0 && i % 3 == 1) execl("/bin/true", "true", (char*)NULL);
        if (child == 0) raise(SIGKILL);
        int status = status_of(child);
        if (i % 3 == 0) CHECK_EQ(WEXITSTATUS(status), i);
        if (i % 3 == 1) CHECK_EQ(status, 0);
        if (i % 3 == 2) CHECK_EQ(WTERMSIG(status), SIGKILL);
    }
    for (int i = 0; i < 4; i++) {
        pid_t child = fork();
        if (child == 0) pause();
        usleep((useconds_t)i * 700);
        CHECK_EQ(kill(child, SIGKILL), 0);
        CHECK_EQ(WTERMSIG(status_of(child)), SIGKILL);
    }
}

static void test_ids(void) {
    int pidfd = -1;
    static pid_t in_child, in_parent;
    long child = syscall(SYS_clone, SIGCHLD | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID, NULL, NULL,
                         &in_child, NULL);
    if (child == 0) _exit(in_child == getpid() && in_child == gettid() ? 0 : 1);
    CHECK_EQ(status_of((pid_t)child), 0);
    CHECK_EQ(in_child, 0);
    child = syscall(SYS_clone, SIGCHLD | CLONE_PARENT_SETTID, NULL, &in_parent, NULL, NULL);
    if (child == 0) _exit(is_filled(1000));
    CHECK_EQ(in_parent, child);
    status_of((pid_t)child);
    child = syscall(SYS_clone, SIGCHLD | CLONE_PIDFD, NULL, &pidfd, NULL, NULL);
    if (child == 0) _exit(7);
    siginfo_t info = {0};
    CHECK_EQ(waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED), 0);
    CHECK_EQ(info.si_status, 7);
    close(pidfd);
    struct clone_args args = {.flags = CLONE_CLEAR_SIGHAND, .exit_signal = SIGCHLD};
    child = syscall(SYS_clone3, &args, sizeof args);
    if (child == 0) {
        kill(getpid(), SIGUSR1);
        _exit(1);
    }
    CHECK_EQ(WTERMSIG(status_of((pid_t)child)), SIGUSR1);
}

static void* fork_in_thread(void* unused) {
    (void)unused;
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) _exit(*page(7) == 5007 && *page(PAGES - 1) == 5000 + PAGES - 1 ? 0 : 1);
        CHECK_EQ(status_of(child), 0);
    }
    return NULL;
}

static void test_threads(void) {
    fill(5000);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, fork_in_thread, NULL), 0);
    for (size_t i = 0; i < 200000; i++) page(100 + i % 50)[1] = i;
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

#define WRITTEN 600  // pages: more than travel with a call, so home has them then, too

static int file;

// A byte of the pages as a system call finds them.
static int as_written(size_t i) {
    char byte = 0;
    CHECK_EQ(pwrite(file, page(200), WRITTEN * PAGE, 0), WRITTEN * PAGE);
    CHECK_EQ(pread(file, &byte, 1, (off_t)(i * PAGE)), 1);
    return byte;
}

static void test_shared_pages(void) {
    file = memfd_create("written", 0);
    CHECK(file >= 0);
    for (int round = 0; round < 3; round++) {
        memset(page(200), 'a' + round, WRITTEN * PAGE);
        CHECK_EQ(as_written(0), 'a' + round);
        pid_t child = fork();
        if (child == 0) {
            memset(page(201), 'z', PAGE);
            int wrong = as_written(1) != 'z' || as_written(2) != 'a' + round;
            CHECK_EQ(pread(file, page(300), WRITTEN * PAGE, 0), WRITTEN * PAGE);
            _exit(wrong || *(char*)page(301) != 'z' || *(char*)page(302) != 'a' + round);
        }
        *(char*)page(202) = '!';
        CHECK_EQ(status_of(child), 0);
        CHECK_EQ(as_written(1), 'a' + round);
        CHECK_EQ(as_written(2), '!');
        CHECK_EQ(*(char*)page(301), 'a' + round);
    }
    close(file);
}

static void* map(size_t pages, int flags) {
    void* at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

int main(void) {
    memory = map(PAGES, MAP_PRIVATE);
    wiped = map(16, MAP_PRIVATE);
    absent = map(16, MAP_PRIVATE);
    shared = map(1, MAP_SHARED);
    moved = map(4, MAP_PRIVATE);
    CHECK_EQ(madvise(wiped, 16 * PAGE, MADV_WIPEONFORK), 0);
    CHECK_EQ(madvise(absent, 16 * PAGE, MADV_DONTFORK), 0);
    for (size_t i = 0; i < 16; i++) wiped[i * PAGE / 8] = 42, absent[i * PAGE / 8] = 43;
    *shared = 77;
    memset(moved, 'm', 4 * PAGE);
    signal(SIGUSR1, on_usr1);
    test_everything();
    test_short_lives();
    fill(1000);
    test_ids();
    test_threads();
    test_shared_pages();
    return guest_passed();
}
