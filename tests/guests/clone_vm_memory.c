// A child that has its parent's memory (CLONE_VM) locks, drops, guards and advises it: the parent
// sees what natively it sees, and both may use it afterwards.
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "manual.h"

enum { PAGE = 4096, PAGES = 8, DONTNEED_LOCKED = 24, GUARD_INSTALL = 102, GUARD_REMOVE = 103 };

static sigjmp_buf faulted;

static void on_fault(int number) { siglongjmp(faulted, number); }

static char* memory;
static char* given;
static char stack[65536] __attribute__((aligned(16)));
static volatile int step;
static int errors[32], count;

static void note(long result) { errors[count++] = result == -1 ? errno : 0; }

static long locked_kb(void) {
    char text[4096], *at;
    int fd = open("/proc/self/status", 0);
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    text[got < 0 ? 0 : got] = 0;
    at = strstr(text, "VmLck:");
    return at ? atol(at + 6) : -1;
}

static const char* state_of(char* at) {
    static char text[8][16];
    static int next;
    if (sigsetjmp(faulted, 1) != 0) return "-";
    volatile char* byte = at;
    char now = *byte;
    char* to = text[next++ % 8];
    snprintf(to, 16, "%d", now);
    if (sigsetjmp(faulted, 1) != 0) return "r";
    *byte = now;
    return to;
}

static void states(const char* name) {
    printf("%s:", name);
    for (int i = 0; i < PAGES; i++) printf(" %s", state_of(memory + i * PAGE));
    printf(", locked %ld\n", locked_kb());
}

static int locks(void* unused) {
    note(mlock(memory, 2 * PAGE));
    note(mlock2(memory + 4 * PAGE, 2 * PAGE, MLOCK_ONFAULT));
    note(munlock(memory, PAGE));
    return 0;
}

static int unlocks_all(void* unused) {
    note(munlockall());
    return 0;
}

static int drops(void* unused) {
    note(madvise(memory + PAGE, 2 * PAGE, MADV_DONTNEED));
    note(madvise(memory + 6 * PAGE, PAGE, MADV_DONTNEED));
    return 0;
}

static int drops_locked(void* unused) {
    note(madvise(memory, 4 * PAGE, MADV_DONTNEED));
    note(madvise(memory, 4 * PAGE, DONTNEED_LOCKED));
    return 0;
}

static int guards(void* unused) {
    note(madvise(memory + 2 * PAGE, 2 * PAGE, GUARD_INSTALL));
    return 0;
}

static int removes_guards(void* unused) {
    note(madvise(memory, 3 * PAGE, GUARD_REMOVE));
    return 0;
}

static int populates(void* unused) {
    note(madvise(memory, PAGES * PAGE, MADV_POPULATE_WRITE));
    note(madvise(memory, PAGES * PAGE, MADV_POPULATE_READ));
    note(madvise(memory, (PAGES + 1) * PAGE, MADV_POPULATE_READ));
    return 0;
}

static int advises(void* unused) {
    note(madvise(memory, 2 * PAGE, MADV_DONTFORK));
    note(madvise(memory + 2 * PAGE, 2 * PAGE, MADV_WIPEONFORK));
    note(madvise(memory, PAGES * PAGE, MADV_COLD));
    note(madvise(memory, PAGES * PAGE, MADV_PAGEOUT));
    note(madvise(memory, PAGES * PAGE, MADV_WILLNEED));
    note(msync(memory, PAGES * PAGE, MS_SYNC));
    unsigned char there[PAGES + 1];
    note(mincore(memory, PAGES * PAGE, there));
    note(mincore(memory, (PAGES + 1) * PAGE, there));
    return 0;
}

static int maps_locked(void* unused) {
    given = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED,
                 -1, 0);
    note(given == MAP_FAILED ? -1 : 0);
    memset(given, 7, 4 * PAGE);
    return 0;
}

static void in_child(const char* name, int (*run)(void*), int flags) {
    count = 0;
    pid_t child = clone(run, stack + sizeof stack, CLONE_VM | SIGCHLD | flags, NULL);
    CHECK(child > 0);
    for (int i = 0; i < 200 && !(flags & CLONE_VFORK); i++) memory[7 * PAGE + 5]++;
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    printf("%s: ends with %#x,", name, status);
    for (int i = 0; i < count; i++) printf(" %d", errors[i]);
    printf("\n");
    states(name);
}

static void in_fork(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        states("child of fork");
        fflush(stdout);
        _exit(0);
    }
    CHECK_EQ(waitpid(child, NULL, 0), child);
}

static void fill(void) {
    for (int i = 0; i < PAGES; i++) memset(memory + i * PAGE, i + 1, PAGE);
}

static void try_all(int kind, int flags) {
    // Nothing behind it.
    memory = mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    CHECK_EQ(munmap(memory + PAGES * PAGE, PAGE), 0);
    fill();
    in_child("locks", locks, flags);
    in_child("drops locked", drops_locked, flags);
    in_child("unlocks all", unlocks_all, flags);
    fill();
    in_child("drops", drops, flags);
    fill();
    if (kind == MAP_PRIVATE) {
        in_child("guards", guards, flags);
        in_child("removes guards", removes_guards, flags);
        CHECK_EQ(madvise(memory, PAGES * PAGE, GUARD_REMOVE), 0);
        fill();
    }
    in_child("populates", populates, flags);
    in_child("maps locked", maps_locked, flags);
    printf("%d %d\n", given[0], given[3 * PAGE]);
    CHECK_EQ(munmap(given, 4 * PAGE), 0);
    printf("locked %ld\n", locked_kb());
    if (kind == MAP_PRIVATE) {
        in_child("advises", advises, flags);
        fill();
        in_fork();
    }
    CHECK_EQ(munmap(memory, PAGES * PAGE), 0);
}

int main(void) {
    manual_begin();
    struct sigaction action = {.sa_handler = on_fault};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    for (int i = 0; i < 2; i++) {
        printf("-- %s\n", i ? "CLONE_VFORK" : "beside it");
        try_all(MAP_PRIVATE, i ? CLONE_VFORK : 0);
        try_all(MAP_SHARED, i ? CLONE_VFORK : 0);
    }
    return guest_passed();
}
