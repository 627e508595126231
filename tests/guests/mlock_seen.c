// What locked memory is to other calls: it is all there (mincore), VmLck counts it, msync does not
// invalidate it, and MADV_DONTNEED stops at it, after what lies before.
#include <sys/mman.h>
#include <sys/syscall.h>

#include "guest.h"

enum { PAGE = 4096, PAGES = 16 };

static char* map(int pages) {
    char* memory = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static int resident(char* memory, int pages) {
    unsigned char there[PAGES];
    int count = 0;
    CHECK_EQ(mincore(memory, (size_t)pages * PAGE, there), 0);
    for (int i = 0; i < pages; i++) count += there[i] & 1;
    return count;
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

static void see_resident(void) {
    char* memory = map(PAGES);
    CHECK_EQ(resident(memory, PAGES), 0);
    CHECK_EQ(mlock(memory + 2 * PAGE, 3 * PAGE), 0);
    printf("mlock: %d of %d, VmLck %ld kB\n", resident(memory, PAGES), PAGES, locked_kb());
    CHECK_EQ(mlock2(memory + 8 * PAGE, 3 * PAGE, MLOCK_ONFAULT), 0);
    memory[9 * PAGE] = 1;
    printf("on fault: %d of %d, VmLck %ld kB\n", resident(memory, PAGES), PAGES, locked_kb());
    CHECK_EQ(munlock(memory, PAGES * PAGE), 0);
    printf("unlocked: VmLck %ld kB\n", locked_kb());
    char* locked = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0);
    CHECK(locked != MAP_FAILED);
    printf("MAP_LOCKED: %d of 4, VmLck %ld kB\n", resident(locked, 4), locked_kb());
    CHECK_EQ(munmap(locked, 4 * PAGE), 0);
    CHECK_EQ(munmap(memory, PAGES * PAGE), 0);
    printf("unmapped: VmLck %ld kB\n", locked_kb());
}

static void invalidate(void) {
    char* memory = map(4);
    CHECK_EQ(msync(memory, 4 * PAGE, MS_SYNC | MS_INVALIDATE), 0);
    CHECK_EQ(mlock(memory + 2 * PAGE, PAGE), 0);
    CHECK_EQ(msync(memory, 2 * PAGE, MS_INVALIDATE), 0);
    CHECK_EQ(msync(memory, 4 * PAGE, MS_SYNC), 0);
    CHECK_ERRNO(msync(memory, 4 * PAGE, MS_INVALIDATE), EBUSY);
    CHECK_ERRNO(msync(memory, 4 * PAGE, MS_ASYNC | MS_INVALIDATE), EBUSY);
    CHECK_ERRNO(msync(memory, 4 * PAGE, MS_ASYNC | MS_SYNC | MS_INVALIDATE), EINVAL);
    CHECK_ERRNO(msync(memory, 4 * PAGE, 8 | MS_INVALIDATE), EINVAL);
    CHECK_ERRNO(msync(memory + 1, PAGE, MS_INVALIDATE), EINVAL);
    CHECK_EQ(munmap(memory + PAGE, PAGE), 0);
    CHECK_ERRNO(msync(memory, 4 * PAGE, MS_INVALIDATE), EBUSY);
    CHECK_ERRNO(msync(memory, 2 * PAGE, MS_INVALIDATE), ENOMEM);
    CHECK_EQ(munmap(memory, 4 * PAGE), 0);
}

static void discard(void) {
    char* memory = map(6);
    memset(memory, 7, 6 * PAGE);
    CHECK_EQ(mlock(memory + 3 * PAGE, PAGE), 0);
    CHECK_ERRNO(madvise(memory, 6 * PAGE, MADV_DONTNEED), EINVAL);
    for (int i = 0; i < 6; i++) CHECK_EQ(memory[i * PAGE], i < 3 ? 0 : 7);
    CHECK_ERRNO(madvise(memory + 3 * PAGE, 3 * PAGE, MADV_DONTNEED), EINVAL);
    CHECK_EQ(memory[4 * PAGE], 7);
    CHECK_EQ(munlock(memory + 3 * PAGE, PAGE), 0);
    CHECK_EQ(madvise(memory, 6 * PAGE, MADV_DONTNEED), 0);
    CHECK_EQ(memory[5 * PAGE], 0);
    CHECK_EQ(munmap(memory, 6 * PAGE), 0);
}

// Private pages of a file, of which a later one is locked.
static void discard_of_file(void) {
    FILE* file = fopen("data", "w+");
    for (int i = 0; i < 4 * PAGE; i++) CHECK(fputc('f', file) == 'f');
    CHECK_EQ(fflush(file), 0);
    char* memory = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
    memset(memory, 'm', 4 * PAGE);
    CHECK_EQ(mlock(memory + 2 * PAGE, PAGE), 0);
    CHECK_ERRNO(madvise(memory, 4 * PAGE, MADV_DONTNEED), EINVAL);
    for (int i = 0; i < 4; i++) CHECK_EQ(memory[i * PAGE], i < 2 ? 'f' : 'm');
    CHECK_EQ(munmap(memory, 4 * PAGE), 0);
    fclose(file);
}

// A page of a file mapped over itself makes one mapping with the others.
static void remap_over_itself(void) {
    FILE* file = fopen("data", "r+");
    char* memory = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
    char* page = memory + PAGE;
    CHECK(mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fileno(file), PAGE) ==
          page);
    char* moved = mremap(memory, 3 * PAGE, 4 * PAGE, MREMAP_MAYMOVE);
    CHECK(moved != MAP_FAILED);
    for (int i = 0; i < 4; i++) CHECK_EQ(moved[i * PAGE], 'f');
    moved[PAGE] = 'x';
    CHECK_EQ(moved[0] + moved[2 * PAGE], 2 * 'f');
    CHECK_EQ(munmap(moved, 4 * PAGE), 0);
    fclose(file);
}

int main(void) {
    see_resident();
    invalidate();
    discard();
    discard_of_file();
    remap_over_itself();
    return guest_passed();
}
