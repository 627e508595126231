// Calls that span several mappings or split one: mprotect, munmap, mlock, msync and mremap over
// holes and pieces, shmdt of a segment in pieces, a heap that shrinks while it is locked.
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "manual.h"

enum { PAGE = 4096 };

static sigjmp_buf faulted;

static void on_fault(int number) { siglongjmp(faulted, number); }

static const char* state_of(char* at) {
    if (sigsetjmp(faulted, 1) != 0) return "-";
    volatile char* byte = at;
    char now = *byte;
    if (sigsetjmp(faulted, 1) != 0) return "r";
    *byte = now;
    return "w";
}

static void states(const char* name, char* memory, int pages) {
    printf("%s:", name);
    for (int i = 0; i < pages; i++) printf(" %s", state_of(memory + i * PAGE));
    printf("\n");
}

static long locked_kb(void) {
    char line[256];
    long kb = -1;
    FILE* status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        if (strncmp(line, "VmLck:", 6) == 0) kb = atol(line + 6);
    fclose(status);
    return kb;
}

static char* map_kind(int pages, int kind) {
    char* memory =
        mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static void holes(int kind) {
    char* memory = map_kind(12, kind);
    memset(memory, 1, 12 * PAGE);
    CHECK_EQ(munmap(memory + 4 * PAGE, 2 * PAGE), 0);
    TRY(mprotect(memory, 12 * PAGE, PROT_READ));
    states("mprotect over a hole", memory, 12);
    TRY(mprotect(memory + 4 * PAGE, 8 * PAGE, PROT_NONE));
    states("mprotect that begins in it", memory, 12);
    TRY(mprotect(memory + 5 * PAGE, 7 * PAGE, PROT_NONE));
    TRY(mprotect(memory, 4 * PAGE + 1, PROT_READ | PROT_WRITE));
    states("mprotect that ends in it", memory, 12);
    TRY(mprotect(memory + 6 * PAGE, 0, PROT_NONE));
    TRY(mprotect(memory + 4 * PAGE, 0, PROT_NONE));
    TRY(mprotect(memory + 6 * PAGE, PAGE, 0x100));
    TRY(mprotect(memory + 6 * PAGE, PAGE, PROT_GROWSDOWN | PROT_GROWSUP));
    TRY(mprotect(memory + 6 * PAGE, -PAGE, PROT_READ));
    TRY(mprotect(memory + 6 * PAGE, -1UL, PROT_READ));
    TRY(mlock(memory, 12 * PAGE));
    printf("locked %ld\n", locked_kb());
    TRY(mlock(memory + 4 * PAGE, 2 * PAGE));
    TRY(mlock(memory + 5 * PAGE, 2 * PAGE));
    printf("locked %ld\n", locked_kb());
    TRY(munlock(memory, 12 * PAGE));
    printf("locked %ld\n", locked_kb());
    TRY(munlock(memory + 6 * PAGE, 6 * PAGE));
    printf("locked %ld\n", locked_kb());
    TRY(msync(memory, 12 * PAGE, MS_SYNC));
    TRY(msync(memory, 12 * PAGE, MS_ASYNC));
    TRY_OK(mremap(memory, 12 * PAGE, 14 * PAGE, MREMAP_MAYMOVE));
    TRY_OK(mremap(memory, 6 * PAGE, 2 * PAGE, 0));
    states("shrunk over the hole", memory, 12);
    TRY(munmap(memory + PAGE, 7 * PAGE));
    states("munmap over the hole", memory, 12);
    TRY(munmap(memory, 12 * PAGE));
    states("munmap", memory, 12);
    TRY(munmap(memory, 12 * PAGE));
    TRY(munmap(memory, 0));
    TRY(munmap(memory + 1, PAGE));
}

static void read_only_file(void) {
    FILE* file = fopen("data", "w");
    for (int i = 0; i < 4 * PAGE; i++) fputc('f', file);
    fclose(file);
    file = fopen("data", "r");
    char* memory = map_kind(8, MAP_PRIVATE);
    memset(memory, 1, 8 * PAGE);
    CHECK(mmap(memory + 2 * PAGE, 4 * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fileno(file), 0) !=
          MAP_FAILED);
    CHECK_EQ(mprotect(memory, 2 * PAGE, PROT_NONE), 0);
    TRY(mprotect(memory, 8 * PAGE, PROT_READ | PROT_WRITE));
    states("up to what refuses", memory, 8);
    TRY(mprotect(memory + PAGE, 4 * PAGE, PROT_READ));
    states("to read", memory, 8);
    CHECK_EQ(munmap(memory, 8 * PAGE), 0);
    fclose(file);
}

static void segments(void) {
    int id = shmget(IPC_PRIVATE, 8 * PAGE, 0600 | IPC_CREAT);
    char* memory = shmat(id, NULL, 0);
    CHECK(memory != (char*)-1);
    for (int i = 0; i < 8; i++) memory[i * PAGE] = (char)('a' + i);
    CHECK_EQ(mprotect(memory + 2 * PAGE, 2 * PAGE, PROT_READ), 0);
    states("protected", memory, 8);
    struct shmid_ds status;
    CHECK_EQ(shmctl(id, IPC_STAT, &status), 0);
    printf("attached %ld\n", (long)status.shm_nattch);
    TRY(shmdt(memory + 2 * PAGE));
    TRY(shmdt(memory + PAGE));
    states("still there", memory, 8);
    TRY(shmdt(memory));
    states("detached", memory, 8);
    CHECK_EQ(shmctl(id, IPC_STAT, &status), 0);
    printf("attached %ld\n", (long)status.shm_nattch);
    TRY(shmdt(memory));

    memory = shmat(id, NULL, 0);
    CHECK_EQ(munmap(memory + 3 * PAGE, PAGE), 0);
    states("with a hole", memory, 8);
    CHECK(mmap(memory + 3 * PAGE, PAGE, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
    memory[3 * PAGE] = 'x';
    TRY(shmdt(memory));
    states("but what is not of it", memory, 8);
    CHECK_EQ(munmap(memory + 3 * PAGE, PAGE), 0);
    CHECK_EQ(shmctl(id, IPC_STAT, &status), 0);
    printf("attached %ld\n", (long)status.shm_nattch);

    memory = shmat(id, NULL, 0);
    CHECK_EQ(munmap(memory, 2 * PAGE), 0);
    states("without a beginning", memory, 8);
    TRY(shmdt(memory));
    states("detached", memory, 8);

    memory = shmat(id, NULL, SHM_RDONLY);
    TRY(mprotect(memory, PAGE, PROT_READ | PROT_WRITE));
    states("read only", memory, 8);
    printf("%c%c\n", memory[0], memory[7 * PAGE]);
    TRY(shmdt(memory));
    TRY(shmctl(id, IPC_RMID, NULL));
}

static void heap(int locked) {
    if (locked) CHECK_EQ(mlockall(MCL_CURRENT | MCL_FUTURE), 0);
    char* begin = sbrk(0);
    char* aligned = (char*)(((uintptr_t)begin + PAGE - 1) & -(uintptr_t)PAGE);
    CHECK_EQ(brk(aligned + 8 * PAGE), 0);
    memset(aligned, 5, 8 * PAGE);
    CHECK_EQ(mprotect(aligned + 2 * PAGE, PAGE, PROT_READ), 0);
    CHECK_EQ(brk(aligned + 4 * PAGE), 0);
    states("shrunk", aligned, 8);
    CHECK_EQ(brk(aligned + 6 * PAGE), 0);
    states("grown", aligned, 8);
    printf("%d %d %d\n", aligned[3 * PAGE], aligned[4 * PAGE], aligned[5 * PAGE]);
    CHECK_EQ(munmap(aligned + 4 * PAGE, PAGE), 0);
    CHECK_EQ(brk(aligned + 8 * PAGE), 0);
    states("with a hole", aligned, 8);
    CHECK_EQ(brk(begin), 0);
    states("back", aligned, 8);
    printf("where it was: %d\n", sbrk(0) == begin);
    if (locked) CHECK_EQ(munlockall(), 0);
}

static void move_locked(int kind) {
    char* memory = map_kind(8, kind);
    memset(memory, 3, 8 * PAGE);
    CHECK_EQ(mlock(memory, 4 * PAGE), 0);
    printf("locked %ld\n", locked_kb());
    TRY_OK(mremap(memory, 8 * PAGE, 12 * PAGE, MREMAP_MAYMOVE));
    char* moved = mremap(memory, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
    if (moved == MAP_FAILED)
        printf("%s\n", strerrorname_np(errno));
    else
        printf("locked %ld\n", locked_kb());
    states("old", memory, 8);
    if (kind == MAP_PRIVATE) states("new", moved, 8);
    CHECK_EQ(munmap(moved, 8 * PAGE), 0);
    CHECK_EQ(munmap(memory, 8 * PAGE), 0);
    printf("locked %ld\n", locked_kb());
}

int main(void) {
    manual_begin();
    struct sigaction action = {.sa_handler = on_fault};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    printf("-- private\n");
    holes(MAP_PRIVATE);
    printf("-- shared\n");
    holes(MAP_SHARED);
    read_only_file();
    segments();
    heap(0);
    heap(1);
    move_locked(MAP_PRIVATE);
    move_locked(MAP_SHARED);
    return guest_passed();
}
