// What was asked of memory holds: locks, what children get, what the kernel may take, policies.
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "state.h"

#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#define PR_GET_MEMORY_MERGE 68
#endif
enum { PAGE = 4096, SIZE = 16 * PAGE, GUARD_INSTALL = 102 };

static char* map_more(size_t size, int flags) {
    const int access = PROT_READ | PROT_WRITE;
    char* memory = mmap(NULL, size, access, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (memory != MAP_FAILED) guest_fill(memory, size, 1);
    return memory == MAP_FAILED ? NULL : memory;
}
// Its own mapping, whatever is beside it: with a page on each side that nobody may touch.
static char* map(size_t size) {
    char* memory = mmap(NULL, size + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + PAGE, size, PROT_READ | PROT_WRITE) != 0)
        return NULL;
    guest_fill(memory + PAGE, size, 1);
    return memory + PAGE;
}

static long locked_kib(void) { return state_number_in("/proc/self/status", "VmLck:", 10); }

static char *locked, *on_fault, *no_fork, *wiped;
static long locked_before;
static void set_locked(void) {
    EXPECT((locked = map(SIZE)) != NULL);
    POSSIBLE(mlock(locked + PAGE, 4 * PAGE) == 0);
    EXPECT(locked_kib() >= 16);
}
static void is_locked(void) {
    EXPECT(guest_is_filled(locked, SIZE, 1));
    locked_before = locked_kib();
    EXPECT_ERRNO(madvise(locked, SIZE, MADV_DONTNEED), EINVAL);  // a part of it is locked
    EXPECT_EQ(munlock(locked + PAGE, 2 * PAGE), 0);
    EXPECT_EQ(locked_kib(), locked_before - 8);
    EXPECT_EQ(munlock(locked, SIZE), 0);
    EXPECT_EQ(locked_kib(), locked_before - 16);
}
static void set_on_fault(void) {
    on_fault = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    POSSIBLE(mlock2(on_fault, SIZE, MLOCK_ONFAULT) == 0);
    on_fault[3 * PAGE] = 1;
}
static void is_on_fault(void) {
    locked_before = locked_kib();
    EXPECT_EQ(on_fault[3 * PAGE], 1);
    EXPECT_EQ(on_fault[4 * PAGE], 0);
    EXPECT_EQ(munmap(on_fault, SIZE), 0);
    EXPECT_EQ(locked_kib(), locked_before - SIZE / 1024);
}
static void set_no_fork(void) {
    EXPECT((no_fork = map(SIZE)) != NULL);
    EXPECT_EQ(madvise(no_fork, SIZE, MADV_DONTFORK), 0);
    EXPECT((wiped = map(SIZE)) != NULL);
    EXPECT_EQ(madvise(wiped, SIZE, MADV_WIPEONFORK), 0);
}
static void has_no_fork(void) { EXPECT(guest_is_filled(no_fork, SIZE, 1)); }
static void is_wiped(void) {
    int status = -1, sum = 0;
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < SIZE; i++) sum |= wiped[i];
        _exit((sum != 0) * 2 + (state_fault_of(no_fork, 0) != SIGSEGV));
    }
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT(guest_is_filled(wiped, SIZE, 1));
}
static char *cold, *lazy, *guarded;
static void set_cold(void) {
    EXPECT((cold = map(SIZE)) != NULL);
    POSSIBLE(madvise(cold, SIZE, MADV_COLD) == 0);
    POSSIBLE(madvise(cold, SIZE / 2, MADV_PAGEOUT) == 0);
}
static void has_cold(void) { EXPECT(guest_is_filled(cold, SIZE, 1)); }
// The kernel may take such a page or not, but never mixes both.
static void set_lazy(void) {
    EXPECT((lazy = map(SIZE)) != NULL);
    POSSIBLE(madvise(lazy, SIZE, MADV_FREE) == 0);
    memset(lazy, 'n', PAGE);  // in use again
}
static void is_lazy(void) {
    char *was = malloc(SIZE), *zero = calloc(1, PAGE);
    guest_fill(was, SIZE, 1);
    for (int i = 0; i < PAGE; i++) EXPECT_EQ(lazy[i], 'n');
    for (int i = PAGE; i < SIZE; i += PAGE) {
        int is_as_it_was = memcmp(lazy + i, was + i, PAGE) == 0;
        EXPECT(is_as_it_was || memcmp(lazy + i, zero, PAGE) == 0);
    }
    free(was);
    free(zero);
}
static void set_guarded(void) {
    EXPECT((guarded = map(SIZE)) != NULL);
    POSSIBLE(madvise(guarded + 2 * PAGE, 2 * PAGE, GUARD_INSTALL) == 0);
}
static void is_guarded(void) {
    EXPECT_EQ(state_fault_of(guarded + PAGE, 1), 0);
    EXPECT_EQ(state_fault_of(guarded + 2 * PAGE, 0), SIGSEGV);
    EXPECT_EQ(state_fault_of(guarded + 3 * PAGE, 1), SIGSEGV);
    EXPECT_EQ(state_fault_of(guarded + 4 * PAGE, 1), 0);
    EXPECT_EQ(madvise(guarded, SIZE, GUARD_INSTALL + 1), 0);
    EXPECT_EQ(guarded[2 * PAGE], 0);
}
static char *down, *populated, *removed;
static void set_down(void) { POSSIBLE((down = map_more(SIZE, MAP_GROWSDOWN)) != NULL); }
static void has_down(void) { EXPECT(guest_is_filled(down, SIZE, 1)); }
static void set_populated(void) {
    POSSIBLE((populated = map_more(SIZE, MAP_POPULATE | MAP_LOCKED | MAP_STACK)) != NULL);
}
static void is_populated(void) {
    locked_before = locked_kib();
    EXPECT(guest_is_filled(populated, SIZE, 1));
    EXPECT_ERRNO(madvise(populated, SIZE, MADV_DONTNEED), EINVAL);
    EXPECT_EQ(munlock(populated, SIZE), 0);
    EXPECT_EQ(locked_kib(), locked_before - SIZE / 1024);
}
static int removed_fd;
static void set_removed(void) {
    removed_fd = memfd_create("removed", 0);
    EXPECT_EQ(ftruncate(removed_fd, SIZE), 0);
    removed = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, removed_fd, 0);
    EXPECT(removed != MAP_FAILED);
    memset(removed, 'r', SIZE);
    POSSIBLE(madvise(removed + 4 * PAGE, 4 * PAGE, MADV_REMOVE) == 0);
}
static void is_removed(void) {
    EXPECT_EQ(lseek(removed_fd, 0, SEEK_HOLE), 4 * PAGE);
    EXPECT_EQ(removed[4 * PAGE - 1], 'r');
    EXPECT_EQ(removed[4 * PAGE], 0);
    EXPECT_EQ(removed[8 * PAGE - 1], 0);
    EXPECT_EQ(removed[8 * PAGE], 'r');
}

static char* bound;
static void set_policy(void) {
    unsigned long nodes = 1;
    POSSIBLE(syscall(SYS_set_mempolicy, MPOL_PREFERRED, &nodes, 64) == 0);
}
static void has_policy(void) {
    int mode = -1;
    unsigned long nodes = 0;
    EXPECT_EQ(syscall(SYS_get_mempolicy, &mode, &nodes, 64, NULL, 0), 0);
    EXPECT_EQ(mode, MPOL_PREFERRED);
    EXPECT_EQ(nodes, 1);
}
static void set_bound(void) {
    unsigned long nodes = 1;
    EXPECT((bound = map(SIZE)) != NULL);
    POSSIBLE(syscall(SYS_mbind, bound, SIZE, MPOL_BIND, &nodes, 64, 0) == 0);
}
static void is_bound(void) {
    int mode = -1;
    unsigned long nodes = 0;
    EXPECT_EQ(syscall(SYS_get_mempolicy, &mode, &nodes, 64, bound, MPOL_F_ADDR), 0);
    EXPECT_EQ(mode, MPOL_BIND);
    EXPECT_EQ(nodes, 1);
    EXPECT(guest_is_filled(bound, SIZE, 1));
}

static void set_no_thp(void) { POSSIBLE(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0); }
static void has_no_thp(void) {
    EXPECT_EQ(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0), 1);
    EXPECT_EQ(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
}
static void set_merge_all(void) { POSSIBLE(prctl(PR_SET_MEMORY_MERGE, 1, 0, 0, 0) == 0); }
static void has_merge_all(void) { EXPECT_EQ(prctl(PR_GET_MEMORY_MERGE, 0, 0, 0, 0), 1); }

// In a child, of which all is locked, also what it will have.
static void set_all_locked(void) {
    POSSIBLE(mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0);
}
static void has_all_locked(void) {
    locked_before = locked_kib();
    EXPECT(locked_before > 100);
    char* later = map(SIZE);
    EXPECT(later != NULL);
    EXPECT(locked_kib() >= locked_before + SIZE / 1024);
    EXPECT_EQ(munlockall(), 0);
    EXPECT_EQ(locked_kib(), 0);
}

static const struct kind kinds[] = {
    {"mlock", set_locked, is_locked},
    {"mlock on fault", set_on_fault, is_on_fault},
    {"mlockall", set_all_locked, has_all_locked, 1},
    {"MAP_LOCKED", set_populated, is_populated},
    {"MADV_DONTFORK", set_no_fork, has_no_fork},
    {"MADV_WIPEONFORK", NULL, is_wiped},
    {"MADV_COLD and MADV_PAGEOUT", set_cold, has_cold},
    {"MADV_FREE", set_lazy, is_lazy},
    {"MADV_REMOVE", set_removed, is_removed},
    {"MADV_GUARD_INSTALL", set_guarded, is_guarded},
    {"MAP_GROWSDOWN", set_down, has_down},
    {"memory policy", set_policy, has_policy},
    {"memory policy of a mapping", set_bound, is_bound},
    {"PR_SET_THP_DISABLE", set_no_thp, has_no_thp, 1},
    {"PR_SET_MEMORY_MERGE", set_merge_all, has_merge_all, 1},
};

int main(void) { return state_run(kinds, sizeof kinds / sizeof *kinds); }
