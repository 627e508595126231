// mmap(2) and mprotect(2) with arguments that are wrong or unusual, and memory that is as it was
// afterwards.
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"

enum { page = 4096, pages = 1024 };

static void unaligned_protection(void) {
    char* memory =
        mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    for (int i = 0; i < pages; i++) memset(memory + i * page, i, page);
    CHECK_ERRNO(mprotect(memory + page + 1, page, PROT_READ | PROT_WRITE), EINVAL);
    CHECK_ERRNO(mprotect(memory + 1, page, PROT_READ | PROT_WRITE), EINVAL);
    CHECK_ERRNO(mprotect(memory + 5 * page + 8, 0, PROT_READ | PROT_WRITE), EINVAL);
    CHECK_EQ(mprotect(memory + 7 * page, 0, PROT_READ | PROT_WRITE), 0);
    int file = memfd_create("copy", 0);
    CHECK(file >= 0);
    CHECK_EQ(write(file, memory, pages * page), pages * page);
    for (int i = 0; i < pages; i++) {
        char byte;
        CHECK_EQ(pread(file, &byte, 1, (off_t)i * page), 1);
        CHECK_EQ(byte, (char)i);
    }
    CHECK_ERRNO(syscall(SYS_pkey_mprotect, memory, page, PROT_READ, -2), EINVAL);
    CHECK_EQ(munmap(memory, pages * page), 0);
    CHECK_EQ(close(file), 0);
}

static void* map(void* hint, int flags, long offset) {
    return (void*)syscall(SYS_mmap, hint, page, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, offset);
}

static void places(void) {
    CHECK(map(NULL, 0, 1) == MAP_FAILED && errno == EINVAL);
    // The kernel's own pages are in nobody's way, and nobody is in theirs.
    char* vdso = (char*)getauxval(AT_SYSINFO_EHDR);
    CHECK(map(vdso, MAP_FIXED_NOREPLACE, 0) == MAP_FAILED && errno == EEXIST);
    char* elsewhere = map(vdso, 0, 0);
    CHECK(elsewhere != MAP_FAILED && elsewhere != vdso);
    *elsewhere = 1;
    CHECK_EQ(munmap(elsewhere, page), 0);
    struct timespec now;
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    // A hint that is too low, or too high.
    char* low = map((void*)0x1000, 0, 0);
    CHECK(low != MAP_FAILED);
    *low = 1;
    CHECK_EQ(munmap(low, page), 0);
    char* in_32_bits = map((void*)0x600000000000, MAP_32BIT, 0);
    CHECK(in_32_bits != MAP_FAILED && (uintptr_t)in_32_bits < 1UL << 31);
    *in_32_bits = 1;
    CHECK_EQ(munmap(in_32_bits, page), 0);
}

int main(void) {
    unaligned_protection();
    places();
    return guest_passed();
}
