// The break moves in many small steps. Between any two of them somebody may look at it, or move it:
// the kernel for a call, another process, a child, another thread; or something may be in its way.
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

enum { PAGE = 4096, STEP = 70000, STEPS = 100, STACK = 65536 };

static char* start;
static volatile double angle = 1;
static char stack[STACK] __attribute__((aligned(16)));

static char* move_to(char* end) { return (char*)syscall(SYS_brk, end); }
static char* here(void) { return move_to(NULL); }
static char* page_end(char* at) {
    return (char*)(((unsigned long)at + PAGE - 1) & -(unsigned long)PAGE);
}
// In mode library, the mathematics are at the acceptor, and the thread goes there with them.
static void go(void) { angle = cos(angle); }
static void grow(size_t bytes) {
    char* end = here() + bytes;
    CHECK_EQ(move_to(end), end);
}

// Where the heap ends, as the maps of the process say.
static char* heap_end(pid_t pid) {
    static char text[1 << 17];
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    int maps = open(path, O_RDONLY);
    CHECK(maps >= 0);
    size_t size = 0;
    ssize_t got;
    while ((got = read(maps, text + size, sizeof text - 1 - size)) > 0) size += (size_t)got;
    CHECK_EQ(got, 0);
    text[size] = 0;
    close(maps);
    unsigned long begin = 0, end = 0;
    for (char* line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        if (strstr(line, "[heap]")) CHECK_EQ(sscanf(line, "%lx-%lx", &begin, &end), 2);
    }
    return (char*)end;
}

static void check_steps(void) {
    for (int i = 0; i < STEPS; i++) {
        char* before = here();
        if (i % 10 == 0) go();
        grow(STEP + i);
        for (char* at = before; at < here(); at += 512) CHECK_EQ(*at, 0);
        memset(before, 1 + i % 100, STEP + i);
        if (i % 20 == 0) CHECK_EQ(heap_end(getpid()), page_end(here()));
    }
    char* at = start;
    for (int i = 0; i < STEPS; at += STEP + i++) CHECK_EQ(at[STEP - 1], 1 + i % 100);
}

// Home's kernel reads and writes what the heap has just become.
static void check_calls(void) {
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    for (int i = 0; i < 20; i++) {
        char* from = here();
        grow(2 * PAGE);
        CHECK_EQ(write(ends[1], from, PAGE), PAGE);
        memset(from, 'x', PAGE);
        CHECK_EQ(read(ends[0], from + PAGE / 2, PAGE), PAGE);
        CHECK_EQ(from[0], 'x');
        CHECK_EQ(from[PAGE], 0);
        CHECK_ERRNO(write(ends[1], page_end(here()), 1), EFAULT);
    }
    close(ends[0]);
    close(ends[1]);
}

// Another process is told through a pipe, and looks.
static void check_watcher(void) {
    int to[2], from[2];
    CHECK_EQ(pipe(to), 0);
    CHECK_EQ(pipe(from), 0);
    pid_t parent = getpid(), child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        char* expected = NULL;
        close(to[1]);
        while (read(to[0], &expected, sizeof expected) == sizeof expected) {
            CHECK_EQ(heap_end(parent), expected);
            CHECK_EQ(write(from[1], "", 1), 1);
        }
        _exit(0);
    }
    close(to[0]);
    for (int i = 0; i < 20; i++) {
        char answer = 1;
        grow(STEP);
        char* end = page_end(here());
        CHECK_EQ(write(to[1], &end, sizeof end), sizeof end);
        CHECK_EQ(read(from[0], &answer, 1), 1);
    }
    close(to[1]);
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

// A child's break begins where its parent's is, and is its own.
static void check_children(void) {
    for (int i = 0; i < 6; i++) {
        char* kept = here();
        grow(STEP);
        memset(kept, 'p', STEP);
        char* end = here();
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            CHECK_EQ(here(), end);
            CHECK_EQ(kept[STEP - 1], 'p');
            for (int k = 0; k < 5; k++) {
                char* mine = here();
                grow(STEP);
                CHECK_EQ(mine[0], 0);
                CHECK_EQ(mine[STEP - 1], 0);
                memset(mine, 'c', STEP);
            }
            CHECK_EQ(heap_end(getpid()), page_end(here()));
            _exit(0);
        }
        char* mine = here();
        grow(STEP);
        CHECK_EQ(mine[STEP - 1], 0);
        int status = -1;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 0);
        CHECK_EQ(mine[STEP - 1], 0);
        CHECK_EQ(here(), end + STEP);
    }
}

static int grow_in_clone(void* bytes) {
    grow(*(size_t*)bytes);
    _exit(0);
}

// A process that shares the memory moves the same break.
static void check_sharers(int flags) {
    size_t bytes = STEP;
    for (int i = 0; i < 4; i++) {
        grow(STEP);
        char* end = here();
        pid_t child = clone(grow_in_clone, stack + sizeof stack, flags | SIGCHLD, &bytes);
        CHECK(child > 0);
        int status = -1;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 0);
        CHECK_EQ(here(), end + STEP);
        CHECK_EQ(end[STEP - 1], 0);
        end[STEP - 1] = 's';
        grow(STEP);
        CHECK_EQ(end[STEP - 1], 's');
    }
}

static void check_obstacles(void) {
    grow(STEP);
    char* end = here();
    char* wall = page_end(end) + 4 * PAGE;
    CHECK_EQ(mmap(wall, PAGE, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
             wall);
    wall[0] = 'w';
    CHECK_EQ(move_to(wall + 1), end);
    CHECK_EQ(move_to(wall + 8 * PAGE), end);
    CHECK_EQ(move_to(wall - 2 * PAGE), wall - 2 * PAGE);
    CHECK_EQ(wall[0], 'w');
    CHECK_EQ(munmap(wall, PAGE), 0);
    CHECK_EQ(move_to(wall + PAGE), wall + PAGE);
    CHECK_EQ(wall[0], 0);

    struct rlimit old, none;
    CHECK_EQ(getrlimit(RLIMIT_DATA, &old), 0);
    none = old;
    none.rlim_cur = 0;
    end = here();
    CHECK_EQ(setrlimit(RLIMIT_DATA, &none), 0);
    CHECK_EQ(move_to(end + 16 * PAGE), end);
    CHECK_EQ(setrlimit(RLIMIT_DATA, &old), 0);
    CHECK_EQ(move_to(end + 16 * PAGE), end + 16 * PAGE);
    CHECK_EQ(move_to((char*)1), end + 16 * PAGE);
    CHECK_EQ(move_to((char*)-1), end + 16 * PAGE);
    CHECK_EQ(move_to((char*)(-1UL << 47)), end + 16 * PAGE);
    CHECK_EQ(move_to((char*)(1UL << 47)), end + 16 * PAGE);
}

// A part of the heap moves away; what comes next is new.
static void check_moved(void) {
    char* from = page_end(here());
    grow(16 * PAGE);
    memset(from, 'm', 8 * PAGE);
    char* away = mmap(NULL, 64 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(away != MAP_FAILED);
    CHECK_EQ(mremap(from, 4 * PAGE, 12 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, away), away);
    char* next = here();
    grow(16 * PAGE);
    for (size_t i = 0; i < 16 * PAGE; i += 256) CHECK_EQ(next[i], 0);
    CHECK_EQ(away[4 * PAGE - 1], 'm');
    CHECK_EQ(away[4 * PAGE], 0);
    CHECK_EQ(from[4 * PAGE], 'm');
    CHECK_EQ(move_to(next - PAGE), next - PAGE);
    CHECK_EQ(move_to(next + PAGE), next + PAGE);
    CHECK_EQ(next[0], 0);
}

static volatile int stops;

static void* look(void* unused) {
    (void)unused;
    char* last = here();
    while (!stops) {
        char* now = here();
        CHECK(now >= last);
        last = now;
    }
    return NULL;
}

static void* add(void* size) {
    for (int i = 0; i < 50; i++) {
        char* end = here();
        if (i % 10 == 0) go();
        char* got = move_to(end + (size_t)size);
        CHECK(got != NULL);
    }
    return NULL;
}

// Threads move it at the same time: it is always where one of them wanted it.
static void check_threads(void) {
    pthread_t one, two, looks;
    char* begin = here();
    CHECK_EQ(pthread_create(&looks, NULL, look, NULL), 0);
    for (int i = 0; i < 100; i++) grow(1000);
    stops = 1;
    pthread_join(looks, NULL);
    CHECK_EQ(here(), begin + 100 * 1000);
    CHECK_EQ(pthread_create(&one, NULL, add, (void*)PAGE), 0);
    CHECK_EQ(pthread_create(&two, NULL, add, (void*)(3 * PAGE)), 0);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    char* end = here();
    CHECK_EQ(move_to(end + PAGE), end + PAGE);
    CHECK_EQ(heap_end(getpid()), page_end(end + PAGE));
    for (char* at = begin; at < end; at += 128) CHECK_EQ(*at, 0);
}

int main(void) {
    // malloc has enough for all that threads need, and leaves the break alone.
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_TOP_PAD, 1 << 20);
    char* volatile first = malloc(1);
    free(first);
    start = here();
    go();
    check_steps();
    go();
    check_calls();
    go();
    check_watcher();
    go();
    check_children();
    go();
    check_sharers(CLONE_VM | CLONE_VFORK);
    go();
    check_sharers(CLONE_VM);
    go();
    check_obstacles();
    go();
    check_moved();
    go();
    check_threads();
    return guest_passed();
}
