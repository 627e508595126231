// mremap(2): growing, shrinking, moving, fixed places, DONTUNMAP, and each error that is named.
#include <fcntl.h>
#include <sys/resource.h>

#include "manual.h"

enum { PAGE = 4096 };

static char* fresh(int pages, int kind) {
    char* at = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, kind, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}
#define TRY_MAP(call)                                                                     \
    do {                                                                                  \
        errno = 0;                                                                        \
        void* try_map = (call);                                                           \
        printf("%s: %s\n", #call, try_map == MAP_FAILED ? strerrorname_np(errno) : "ok"); \
    } while (0)

static void errors(void) {
    char* at = fresh(8, MAP_PRIVATE | MAP_ANONYMOUS);
    TRY_MAP(mremap(at + 1, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
    TRY_MAP(mremap(at, PAGE, 0, MREMAP_MAYMOVE));
    TRY_MAP(mremap(at, PAGE, 2 * PAGE, 8));
    TRY_MAP(mremap(at, PAGE, 2 * PAGE, MREMAP_FIXED, at + 4 * PAGE));
    TRY_MAP(mremap(at, PAGE, PAGE, MREMAP_DONTUNMAP));
    TRY_MAP(mremap(at, PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP));
    TRY_MAP(mremap(at, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at + 1));
    TRY_MAP(mremap(at, 4 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at + PAGE));
    TRY_MAP(mremap(at, 2 * PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at + PAGE));
    TRY_MAP(mremap(at, 0, PAGE, MREMAP_MAYMOVE));
    TRY_MAP(mremap(at, PAGE, 2 * PAGE, 0));
    TRY_MAP(mremap(at, PAGE, (size_t)1 << 60, MREMAP_MAYMOVE));
    TRY_MAP(mremap((void*)((uintptr_t)-PAGE), PAGE, 2 * PAGE, MREMAP_MAYMOVE));
    CHECK_EQ(munmap(at + 4 * PAGE, PAGE), 0);
    TRY_MAP(mremap(at + 4 * PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
    TRY_MAP(mremap(at, 8 * PAGE, 9 * PAGE, MREMAP_MAYMOVE));
    CHECK_EQ(mprotect(at + PAGE, PAGE, PROT_READ), 0);
    TRY_MAP(mremap(at, 2 * PAGE, 3 * PAGE, MREMAP_MAYMOVE));
}

static void contents(void) {
    char* at = fresh(4, MAP_PRIVATE | MAP_ANONYMOUS);
    for (int i = 0; i < 4; i++) memset(at + i * PAGE, 'a' + i, PAGE);
    char* moved = mremap(at, 4 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
    CHECK(moved != MAP_FAILED);
    for (int i = 0; i < 6; i++) SAY("%d: %d %d", i, moved[i * PAGE], moved[(i + 1) * PAGE - 1]);
    CHECK(mremap(moved, 64 * PAGE, 2 * PAGE, 0) == moved);
    SAY("kept %c %c", moved[0], moved[2 * PAGE - 1]);
    TRY(msync(moved + 2 * PAGE, PAGE, MS_ASYNC));
    char* room = fresh(8, MAP_PRIVATE | MAP_ANONYMOUS);
    room[0] = 'x';
    char* fixed = mremap(moved, 2 * PAGE, 3 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room + PAGE);
    CHECK(fixed == room + PAGE);
    SAY("%c %c %c %d", room[0], fixed[0], fixed[PAGE], fixed[2 * PAGE]);
    char* left = mremap(fixed, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
    CHECK(left != MAP_FAILED && left != fixed);
    SAY("new %c %c, old %d %d", left[0], left[PAGE], fixed[0], fixed[PAGE]);
    fixed[0] = 'n';
    SAY("new %c, old %c", left[0], fixed[0]);
}

static void shared(void) {
    char* at = fresh(2, MAP_SHARED | MAP_ANONYMOUS);
    at[0] = 's';
    char* twin = mremap(at, 0, 2 * PAGE, MREMAP_MAYMOVE);
    CHECK(twin != MAP_FAILED && twin != at);
    twin[PAGE] = 't';
    SAY("%c %c", twin[0], at[PAGE]);
    pid_t child = fork();
    if (child == 0) {
        at[1] = 'c';
        _exit(0);
    }
    waitpid(child, NULL, 0);
    SAY("%c", twin[1]);
    char* shifted = mremap(at, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
    CHECK(shifted != MAP_FAILED);
    SAY("%c, old sees %c", shifted[0], at[0]);
}

static void locked_and_limited(void) {
    char* at = fresh(2, MAP_PRIVATE | MAP_ANONYMOUS);
    manual_become_nobody();
    struct rlimit two = {2 * PAGE, 2 * PAGE};
    CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &two), 0);
    TRY(mlock(at, 2 * PAGE));
    TRY_MAP(mremap(at, 2 * PAGE, 3 * PAGE, MREMAP_MAYMOVE));
    TRY_MAP(mremap(at, 2 * PAGE, PAGE, MREMAP_MAYMOVE));
}

static void of_a_file(void) {
    int fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (int i = 0; i < 4; i++) {
        char page[PAGE];
        memset(page, '0' + i, PAGE);
        CHECK_EQ(write(fd, page, PAGE), PAGE);
    }
    char* at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PAGE);
    CHECK(at != MAP_FAILED);
    char* grown = mremap(at, PAGE, 3 * PAGE, MREMAP_MAYMOVE);
    CHECK(grown != MAP_FAILED);
    SAY("%c%c%c", grown[0], grown[PAGE], grown[2 * PAGE]);
    grown[2 * PAGE] = '!';
    char seen;
    TRY(pread(fd, &seen, 1, 3 * PAGE));
    SAY("%c", seen);
    TRY(pread(fd, &seen, 1, 3 * PAGE + 1));
    SAY("%c", seen);
    unlink("file");
}

int main(void) {
    manual_begin();
    manual_in_child("errors", errors);
    manual_in_child("contents", contents);
    manual_in_child("shared", shared);
    manual_in_child("locked and limited", locked_and_limited);
    manual_in_child("of a file", of_a_file);
    return guest_passed();
}
