// Mappings of every kind keep their content, their protection, what they share and their advice.
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include "state.h"

enum { PAGE = 4096, SIZE = 16 * PAGE, CHECKS = 200 };
static const size_t sparse_size = (size_t)1 << 34;

static char* map_more(size_t size, int access, int flags) {
    char* memory = mmap(NULL, size, access, flags, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}
static char* map(size_t size) {
    return map_more(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
}
static int file_of(size_t size, uint64_t seed) {
    char name[] = "file-XXXXXX", *data = malloc(size);
    int fd = mkstemp(name);
    guest_fill(data, size, seed);
    if (fd < 0 || unlink(name) != 0 || write(fd, data, size) != (ssize_t)size) fd = -1;
    free(data);
    return fd;
}
static char *filled, *untouched, *sparse, *heap, *stack;
static void set_filled(void) {
    EXPECT((filled = map(SIZE)) != NULL);
    guest_fill(filled, SIZE, 1);
}
static void has_filled(void) {
    EXPECT(guest_is_filled(filled, SIZE, 1));
    memset(filled, 7, PAGE);
    EXPECT_EQ(filled[PAGE - 1], 7);
}
static void set_untouched(void) { EXPECT((untouched = map(SIZE)) != NULL); }
static void is_untouched(void) {
    for (int i = 0; i < SIZE; i++) EXPECT_EQ(untouched[i], 0);
}
static void set_sparse(void) {
    sparse =
        map_more(sparse_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    POSSIBLE(sparse != NULL);
    for (size_t at = 0; at < sparse_size; at += sparse_size / 8) sparse[at + 5] = (char)(at >> 30);
}
static void is_sparse(void) {
    for (size_t at = 0; at < sparse_size; at += sparse_size / 8) {
        EXPECT_EQ(sparse[at + 5], (char)(at >> 30));
        EXPECT_EQ(sparse[at + PAGE + 5], 0);
    }
}
static void set_heap(void) {
    heap = sbrk(3 * PAGE);
    POSSIBLE(heap != (char*)-1);
    guest_fill(heap, 3 * PAGE, 2);
}
static void has_heap(void) {
    EXPECT(guest_is_filled(heap, 3 * PAGE, 2));
    EXPECT((char*)sbrk(0) >= heap + 3 * PAGE);
}
static void set_stack(void) { guest_fill(stack, SIZE, 3); }
static void has_stack(void) { EXPECT(guest_is_filled(stack, SIZE, 3)); }

static char *read_only, *hole, *checked, *code, *patched;
static void set_read_only(void) {
    EXPECT((read_only = map(SIZE)) != NULL);
    guest_fill(read_only, SIZE, 4);
    EXPECT_EQ(mprotect(read_only, SIZE, PROT_READ), 0);
}
static void is_read_only(void) {
    EXPECT(guest_is_filled(read_only, SIZE, 4));
    EXPECT_EQ(state_fault_of(read_only + 5 * PAGE, 1), SIGSEGV);
    EXPECT_EQ(mprotect(read_only, SIZE, PROT_READ | PROT_WRITE), 0);
    EXPECT_EQ(state_fault_of(read_only + 5 * PAGE, 1), 0);
}
static void set_hole(void) {
    EXPECT((hole = map(SIZE)) != NULL);
    guest_fill(hole, SIZE, 5);
    EXPECT_EQ(mprotect(hole + 4 * PAGE, 4 * PAGE, PROT_NONE), 0);
}
static void is_hole(void) {
    EXPECT_EQ(state_fault_of(hole + 4 * PAGE, 0), SIGSEGV);
    EXPECT_EQ(state_fault_of(hole + 8 * PAGE - 1, 0), SIGSEGV);
    EXPECT_EQ(state_fault_of(hole + 8 * PAGE, 1), 0);
    EXPECT_EQ(mprotect(hole, SIZE, PROT_READ), 0);
    EXPECT(guest_is_filled(hole, SIZE, 5));  // also what could not be read
}
static void set_checks(void) {
    EXPECT((checked = map(CHECKS * PAGE)) != NULL);
    for (int i = 0; i < CHECKS; i++) {
        checked[i * PAGE] = (char)i;
        if (i % 3 != 0)
            EXPECT_EQ(mprotect(checked + i * PAGE, PAGE, i % 3 == 1 ? PROT_READ : PROT_NONE), 0);
    }
}
static void has_checks(void) {
    for (int i = 0; i < CHECKS; i++) {
        EXPECT_EQ(state_fault_of(checked + i * PAGE, 0), i % 3 == 2 ? SIGSEGV : 0);
        EXPECT_EQ(state_fault_of(checked + i * PAGE, 1), i % 3 == 0 ? 0 : SIGSEGV);
        if (i % 3 != 2) EXPECT_EQ(checked[i * PAGE], (char)i);
    }
}
static const unsigned char return_42[] = {0xb8, 42, 0, 0, 0, 0xc3};
static int run(const void* memory) {
    int (*function)(void);
    memcpy(&function, &memory, sizeof function);
    return function();
}
static void set_code(void) {
    EXPECT((code = map(PAGE)) != NULL);
    memcpy(code, return_42, sizeof return_42);
    EXPECT_EQ(mprotect(code, PAGE, PROT_READ | PROT_EXEC), 0);
    EXPECT_EQ(run(code), 42);
}
static void has_code(void) {
    EXPECT_EQ(run(code), 42);
    EXPECT_EQ(state_fault_of(code, 1), SIGSEGV);
}
// Code of a file, changed in memory only.
static int code_fd;
static void set_patched(void) {
    code_fd = file_of(PAGE, 6);
    EXPECT_EQ(pwrite(code_fd, return_42, sizeof return_42, 0), sizeof return_42);
    const int access = PROT_READ | PROT_WRITE | PROT_EXEC;
    patched = mmap(NULL, PAGE, access, MAP_PRIVATE, code_fd, 0);
    POSSIBLE(patched != MAP_FAILED);
    patched[1] = 43;
    EXPECT_EQ(mprotect(patched, PAGE, PROT_READ | PROT_EXEC), 0);
}
static void has_patched(void) {
    char byte = 0;
    EXPECT_EQ(run(patched), 43);
    EXPECT_EQ(pread(code_fd, &byte, 1, 1), 1);
    EXPECT_EQ(byte, 42);
}

// Shared with a child, which writes when it is told to.
static volatile int* shared;
static pid_t child;
static void set_shared(void) {
    shared = (int*)map_more(PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
    EXPECT(shared != NULL);
    shared[0] = 1;
    child = fork();
    if (child != 0) return;
    while (shared[0] == 1) state_turns(0, 10, state_ms() + 10);
    shared[1] = shared[0] * 3;
    _exit(0);
}
static void is_shared(void) {
    shared[0] = 5;
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(shared[1], 15);
}
static char *dirty, *written, *beyond, *deleted_map;
static int dirty_fd, written_fd, beyond_fd;
static void set_dirty(void) {
    EXPECT((dirty_fd = file_of(SIZE, 7)) >= 0);
    dirty = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, dirty_fd, 0);
    EXPECT(dirty != MAP_FAILED);
    dirty[2 * PAGE] ^= 1;
    EXPECT_EQ(mprotect(dirty + 3 * PAGE, PAGE, PROT_READ), 0);
}
static void is_dirty(void) {
    char *before = malloc(SIZE), *now = malloc(SIZE);
    guest_fill(before, SIZE, 7);
    EXPECT_EQ(pread(dirty_fd, now, SIZE, 0), SIZE);
    EXPECT(memcmp(before, now, SIZE) == 0);
    before[2 * PAGE] ^= 1;
    EXPECT(memcmp(before, dirty, SIZE) == 0);
    EXPECT_EQ(state_fault_of(dirty + 3 * PAGE, 1), SIGSEGV);
    free(before);
    free(now);
}
static void set_written(void) {
    EXPECT((written_fd = file_of(SIZE, 8)) >= 0);
    written = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, written_fd, 0);
    EXPECT(written != MAP_FAILED);
    memcpy(written + PAGE, "by memory", 9);
}
static void is_written(void) {
    char text[9];
    EXPECT_EQ(pread(written_fd, text, 9, PAGE), 9);
    EXPECT(memcmp(text, "by memory", 9) == 0);
    EXPECT_EQ(pwrite(written_fd, "by a call", 9, 2 * PAGE), 9);
    EXPECT(memcmp(written + 2 * PAGE, "by a call", 9) == 0);
    EXPECT_EQ(msync(written, SIZE, MS_SYNC), 0);
}
static void set_beyond(void) {
    EXPECT((beyond_fd = file_of(PAGE + 10, 9)) >= 0);
    beyond = mmap(NULL, 4 * PAGE, PROT_READ, MAP_SHARED, beyond_fd, 0);
    EXPECT(beyond != MAP_FAILED);
}
static void is_beyond(void) {
    EXPECT(guest_is_filled(beyond, PAGE + 10, 9));
    EXPECT_EQ(beyond[PAGE + 10], 0);
    EXPECT_EQ(state_fault_of(beyond + 2 * PAGE, 0), SIGBUS);
    EXPECT_EQ(ftruncate(beyond_fd, 3 * PAGE), 0);
    EXPECT_EQ(state_fault_of(beyond + 2 * PAGE, 0), 0);
}
static void set_deleted(void) {
    int fd = file_of(SIZE, 10);
    deleted_map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    EXPECT(deleted_map != MAP_FAILED);
    EXPECT_EQ(close(fd), 0);
}
static void has_deleted(void) { EXPECT(guest_is_filled(deleted_map, SIZE, 10)); }

static char *alias[2], *sealed, *attached, *named;
static int sealed_fd, attached_id;
static void set_alias(void) {
    int fd = memfd_create("twice", 0);
    EXPECT_EQ(ftruncate(fd, SIZE), 0);
    for (int i = 0; i < 2; i++) {
        alias[i] = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        EXPECT(alias[i] != MAP_FAILED);
    }
    EXPECT_EQ(close(fd), 0);
    guest_fill(alias[0], SIZE, 11);
}
static void is_alias(void) {
    EXPECT(guest_is_filled(alias[1], SIZE, 11));
    alias[1][PAGE] = 'y';
    EXPECT_EQ(alias[0][PAGE], 'y');
}
static void set_sealed(void) {
    sealed_fd = memfd_create("sealed", MFD_ALLOW_SEALING);
    EXPECT_EQ(ftruncate(sealed_fd, SIZE), 0);
    sealed = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, sealed_fd, 0);
    EXPECT(sealed != MAP_FAILED);
    POSSIBLE(fcntl(sealed_fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0);
}
static void is_sealed(void) {
    char byte = 0;
    sealed[7] = 's';
    EXPECT_EQ(pread(sealed_fd, &byte, 1, 7), 1);
    EXPECT_EQ(byte, 's');
    EXPECT_ERRNO(pwrite(sealed_fd, "x", 1, 0), EPERM);
    EXPECT(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, sealed_fd, 0) == MAP_FAILED);
    EXPECT_EQ(errno, EPERM);
}
static void set_attached(void) {
    EXPECT((attached_id = shmget(IPC_PRIVATE, SIZE, 0640)) >= 0);
    EXPECT((attached = shmat(attached_id, NULL, 0)) != (char*)-1);
    guest_fill(attached, SIZE, 12);
    EXPECT_EQ(shmctl(attached_id, IPC_RMID, NULL), 0);
}
static void is_attached(void) {
    struct shmid_ds state;
    EXPECT_EQ(shmctl(attached_id, IPC_STAT, &state), 0);
    EXPECT(state.shm_nattch == 1 && state.shm_segsz == SIZE);
    EXPECT_EQ(state.shm_perm.mode & 0777, 0640);
    EXPECT(guest_is_filled(attached, SIZE, 12));
    EXPECT_EQ(shmdt(attached), 0);
    EXPECT_EQ(state_fault_of(attached, 0), SIGSEGV);
    EXPECT_ERRNO(shmctl(attached_id, IPC_STAT, &state), EINVAL);
}
static char name_of_shared[40];
static void set_named(void) {
    snprintf(name_of_shared, sizeof name_of_shared, "/gpr-state-%d", getpid());
    int fd = shm_open(name_of_shared, O_RDWR | O_CREAT | O_EXCL, 0600);
    EXPECT_EQ(ftruncate(fd, SIZE), 0);
    named = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    EXPECT(named != MAP_FAILED);
    EXPECT_EQ(close(fd), 0);
    guest_fill(named, SIZE, 13);
}
static void is_named(void) {
    int fd = shm_open(name_of_shared, O_RDONLY, 0);
    char* again = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
    EXPECT(again != MAP_FAILED);
    EXPECT(guest_is_filled(again, SIZE, 13));
    named[1] ^= 1;
    EXPECT_EQ(again[1], named[1]);
    EXPECT_EQ(shm_unlink(name_of_shared), 0);
}

static char *moved, *grown, *left, *left_behind, *low, *torn;
static void set_moved(void) {
    char *from = map(SIZE), *place = map(2 * SIZE);
    EXPECT(from != NULL && place != NULL);
    guest_fill(from, SIZE, 14);
    moved = mremap(from, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, place + SIZE);
    EXPECT(moved == place + SIZE);
}
static void is_moved(void) {
    EXPECT(guest_is_filled(moved, SIZE, 14));
    for (int i = 1; i <= SIZE; i++) EXPECT_EQ(moved[-i], 0);
}
static void set_grown(void) {
    EXPECT((grown = map(SIZE)) != NULL);
    guest_fill(grown, SIZE, 15);
    EXPECT((grown = mremap(grown, SIZE, 3 * SIZE, MREMAP_MAYMOVE)) != MAP_FAILED);
}
static void is_grown(void) {
    EXPECT(guest_is_filled(grown, SIZE, 15));
    for (int i = SIZE; i < 3 * SIZE; i++) EXPECT_EQ(grown[i], 0);
}
static void set_left(void) {
    char* from = map(SIZE);
    guest_fill(from, SIZE, 16);
    left = mremap(from, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    POSSIBLE(left != MAP_FAILED);
    left_behind = from;
}
static void is_left(void) {
    EXPECT(guest_is_filled(left, SIZE, 16));
    for (int i = 0; i < SIZE; i++) EXPECT_EQ(left_behind[i], 0);
}
static void set_low(void) {
    low = map_more(SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT);
    POSSIBLE(low != NULL);
    guest_fill(low, SIZE, 17);
}
static void is_low(void) {
    EXPECT((uintptr_t)low + SIZE <= 0x80000000u);
    EXPECT(guest_is_filled(low, SIZE, 17));
}
static void set_torn(void) {
    EXPECT((torn = map(SIZE)) != NULL);
    guest_fill(torn, SIZE, 18);
    EXPECT_EQ(munmap(torn + 6 * PAGE, 2 * PAGE), 0);
    EXPECT_EQ(madvise(torn, PAGE, MADV_DONTNEED), 0);
}
static void is_torn(void) {
    for (int i = 0; i < 16; i++)
        EXPECT_EQ(state_fault_of(torn + i * PAGE, 1), i == 6 || i == 7 ? SIGSEGV : 0);
    for (int i = 0; i < PAGE; i++) EXPECT_EQ(torn[i], 0);
    char* whole = malloc(SIZE);
    guest_fill(whole, SIZE, 18);
    EXPECT(memcmp(whole + PAGE, torn + PAGE, 5 * PAGE) == 0);
    EXPECT(memcmp(whole + 8 * PAGE, torn + 8 * PAGE, 8 * PAGE) == 0);
    free(whole);
}

static const struct kind kinds[] = {
    {"private memory", set_filled, has_filled},
    {"untouched memory", set_untouched, is_untouched},
    {"sparse memory", set_sparse, is_sparse},
    {"heap", set_heap, has_heap},
    {"stack", set_stack, has_stack},
    {"memory to read", set_read_only, is_read_only},
    {"memory without access", set_hole, is_hole},
    {"protection of many pages", set_checks, has_checks},
    {"code that was made", set_code, has_code},
    {"code of a file, changed", set_patched, has_patched},
    {"memory shared with a child", set_shared, is_shared},
    {"private mapping of a file", set_dirty, is_dirty},
    {"shared mapping of a file", set_written, is_written},
    {"mapping beyond the end", set_beyond, is_beyond},
    {"mapping of a deleted file", set_deleted, has_deleted},
    {"memfd mapped twice", set_alias, is_alias},
    {"mapping of a sealed memfd", set_sealed, is_sealed},
    {"System V memory", set_attached, is_attached},
    {"POSIX shared memory", set_named, is_named},
    {"memory that was moved", set_moved, is_moved},
    {"memory that was grown", set_grown, is_grown},
    {"memory that was left behind", set_left, is_left},
    {"memory below 2 GiB", set_low, is_low},
    {"memory with a gap", set_torn, is_torn},
};

int main(void) {
    char on_stack[SIZE];
    stack = on_stack;
    return state_run(kinds, sizeof kinds / sizeof *kinds);
}
