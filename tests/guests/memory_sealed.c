// mseal(2): what it forbids is refused, with the memory as it was, wherever the program runs; also
// to children, and to ranges that are sealed only in part.
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

#ifndef SYS_mseal
#define SYS_mseal 462
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

enum { PAGE = 4096, PAGES = 8, SIZE = PAGE * PAGES };

static int seal(void* at, size_t size, unsigned long flags) {
    return (int)syscall(SYS_mseal, at, size, flags);
}

static char* map(int prot, int flags) {
    char* memory = mmap(NULL, SIZE, prot, flags | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

#define CHECK_NOT_MAPPED_THERE(call) \
    do {                             \
        errno = 0;                   \
        CHECK((call) == MAP_FAILED); \
        CHECK_EQ(errno, EPERM);      \
    } while (0)

static void refuse_changes(char* memory, int writable) {
    CHECK_ERRNO(munmap(memory, SIZE), EPERM);
    CHECK_ERRNO(munmap(memory + PAGE, PAGE), EPERM);
    CHECK_ERRNO(munmap(memory - PAGE, 2 * PAGE), EPERM);
    CHECK_ERRNO(mprotect(memory, SIZE, PROT_READ), EPERM);
    CHECK_ERRNO(mprotect(memory + SIZE - PAGE, PAGE, PROT_NONE), EPERM);
    CHECK_ERRNO(syscall(SYS_pkey_mprotect, memory, PAGE, PROT_READ, -1), EPERM);
    CHECK_NOT_MAPPED_THERE(
        mmap(memory, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    CHECK_NOT_MAPPED_THERE(
        mmap(memory + PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    CHECK_NOT_MAPPED_THERE(mremap(memory, SIZE, 2 * SIZE, MREMAP_MAYMOVE));
    CHECK_NOT_MAPPED_THERE(mremap(memory, SIZE, PAGE, 0));
    CHECK_NOT_MAPPED_THERE(
        mremap(memory, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, memory + SIZE + 4 * PAGE));
    char* other = map(PROT_READ | PROT_WRITE, MAP_PRIVATE);
    other[0] = 9;
    CHECK_NOT_MAPPED_THERE(mremap(other, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, memory));
    CHECK_EQ(other[0], 9);
    CHECK_EQ(munmap(other, SIZE), 0);
    if (writable) {
        CHECK_EQ(madvise(memory + 5 * PAGE, PAGE, MADV_DONTNEED), 0);
        CHECK_EQ(memory[5 * PAGE], 0);
        memory[5 * PAGE] = 5;
    } else {
        CHECK_ERRNO(madvise(memory, SIZE, MADV_DONTNEED), EPERM);
    }
    CHECK_EQ(seal(memory, SIZE, 0), 0);
    for (int i = 0; i < PAGES; i++) CHECK_EQ(memory[i * PAGE], i);
}

static void fill(char* memory) {
    for (int i = 0; i < PAGES; i++) memory[i * PAGE] = (char)i;
}

int main(void) {
    // A page before and some after, so that what overlaps is refused as well.
    char* room = mmap(NULL, 8 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(room != MAP_FAILED);
    char* writable = mmap(room + SIZE, SIZE, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    char* readable = mmap(room + 3 * SIZE, SIZE, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    char* shared = mmap(room + 5 * SIZE, SIZE, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(writable == room + SIZE && readable == room + 3 * SIZE && shared == room + 5 * SIZE);
    fill(writable);
    fill(readable);
    fill(shared);
    CHECK_EQ(mprotect(readable, SIZE, PROT_READ), 0);
    if (seal(writable, SIZE, 0) != 0) {
        if (errno == ENOSYS) SKIP("no mseal before Linux 6.10");
        CHECK(!"mseal");
    }
    CHECK_ERRNO(seal(writable, SIZE, 1), EINVAL);
    CHECK_ERRNO(seal(writable + 1, PAGE, 0), EINVAL);
    CHECK_EQ(seal(writable, 0, 0), 0);
    CHECK_EQ(seal(readable, SIZE - 1, 0), 0);
    CHECK_EQ(seal(shared, SIZE, 0), 0);
    char* gap = map(PROT_READ, MAP_PRIVATE);
    CHECK_EQ(munmap(gap + PAGE, PAGE), 0);
    CHECK_ERRNO(seal(gap, SIZE, 0), ENOMEM);
    CHECK_EQ(mprotect(gap, PAGE, PROT_NONE), 0);
    refuse_changes(writable, 1);
    refuse_changes(readable, 0);
    CHECK_ERRNO(munmap(shared, SIZE), EPERM);
    CHECK_ERRNO(mprotect(shared, SIZE, PROT_READ), EPERM);
    CHECK_ERRNO(munmap(room, 8 * SIZE), EPERM);
    CHECK_ERRNO(mprotect(room, 2 * SIZE, PROT_NONE), EPERM);
    CHECK_EQ(writable[PAGE], 1);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK_ERRNO(munmap(writable, SIZE), EPERM);
        guest_compute(60);
        refuse_changes(writable, 1);
        refuse_changes(readable, 0);
        shared[0] = 77;
        CHECK_ERRNO(munmap(shared, SIZE), EPERM);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(shared[0], 77);
    // What lies between is not sealed.
    CHECK_EQ(munmap(room, SIZE), 0);
    CHECK_EQ(mprotect(room + 2 * SIZE, SIZE, PROT_READ), 0);
    refuse_changes(writable, 1);
    return guest_passed();
}
