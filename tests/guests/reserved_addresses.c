// Memory calls about addresses that may be somebody else's: they may be refused, or done as
// natively, but the program goes on either way.
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "guest.h"

enum { PAGE = 4096 };
static const uint64_t begin = 0x550000000000, end = 0x555000000000, step = 0x1000000000;

static void use(char* memory) {
    for (int i = 0; i < 50; i++) {
        char* more =
            mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(more != MAP_FAILED);
        memset(more, i, 4 * PAGE);
        CHECK_EQ(more[3 * PAGE], i);
        CHECK_EQ(mprotect(more, 4 * PAGE, PROT_READ), 0);
        CHECK_EQ(munmap(more, 4 * PAGE), 0);
        CHECK(getppid() > 0);
    }
    CHECK_EQ(memory[PAGE], 3);
}

// What is mapped there then belongs to the program, and works.
static void check_mapped(char* at, char* wanted, int error) {
    if (at == MAP_FAILED) {
        CHECK(errno == ENOMEM || errno == EEXIST || errno == EINVAL || errno == error);
        return;
    }
    CHECK(at == wanted || wanted == NULL);
    at[PAGE] = 4;
    CHECK_EQ(at[PAGE], 4);
    CHECK_EQ(munmap(at, 2 * PAGE), 0);
}

static void attempt(char* at, char* memory, int kind) {
    int prot = PROT_READ | PROT_WRITE;
    check_mapped(mmap(at, 2 * PAGE, prot, kind | MAP_FIXED_NOREPLACE, -1, 0), at, ENOMEM);
    char* hinted = mmap(at, 2 * PAGE, prot, kind, -1, 0);
    CHECK(hinted != MAP_FAILED);
    check_mapped(hinted, NULL, 0);
    check_mapped(mmap(at, 2 * PAGE, prot, kind | MAP_FIXED, -1, 0), at, ENOMEM);
    mprotect(at, 2 * PAGE, PROT_NONE);
    madvise(at, 2 * PAGE, MADV_DONTNEED);
    madvise(at, 2 * PAGE, MADV_WIPEONFORK);
    madvise(at, 2 * PAGE, MADV_REMOVE);
    mlock(at, 2 * PAGE);
    munlock(at, 2 * PAGE);
    msync(at, 2 * PAGE, MS_SYNC);
    remap_file_pages(at, PAGE, 0, 1, 0);
    mremap(at, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
    char* moved = mremap(memory + 2 * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at);
    if (moved != MAP_FAILED) {
        CHECK_EQ(*moved, 0);
        CHECK(mremap(moved, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, memory + 2 * PAGE) !=
              MAP_FAILED);
    }
    CHECK_EQ(memory[2 * PAGE], 0);
    int id = shmget(IPC_PRIVATE, 2 * PAGE, 0600);
    char* segment = shmat(id, at, SHM_REMAP);
    if (segment != (void*)-1) CHECK_EQ(shmdt(segment), 0);
    CHECK_EQ(shmctl(id, IPC_RMID, NULL), 0);
    munmap(at, 2 * PAGE);
}

int main(void) {
    char* memory = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory[PAGE] = 3;
    for (uint64_t at = begin; at < end; at += step) {
        attempt((char*)at, memory, MAP_PRIVATE | MAP_ANONYMOUS);
        attempt((char*)at, memory, MAP_SHARED | MAP_ANONYMOUS);
        use(memory);
    }
    // From below into it, and over all of it; an executable may lie right above.
    attempt((char*)begin - PAGE, memory, MAP_PRIVATE | MAP_ANONYMOUS);
    attempt((char*)begin - PAGE, memory, MAP_SHARED | MAP_ANONYMOUS);
    munmap((char*)begin - step, (end - begin) + step);
    mprotect((char*)begin - step, (end - begin) + step, PROT_READ);
    madvise((char*)begin - step, (end - begin) + step, MADV_DONTNEED);
    use(memory);
    return guest_passed();
}
