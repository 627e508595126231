// mmap(2) with an address that is only proposed: taken if it is free and not below what may be
// mapped, else another one is; MAP_FIXED_NOREPLACE; what lies beyond 47 bits.
#include <sys/mman.h>
#include <sys/syscall.h>

#include "manual.h"

enum { PAGE = 4096, MB = 1 << 20 };

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static char* area;  // a place of 64 MB in which nothing is

static void* map_at(void* at, size_t size, int flags) {
    return mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

static void find_area(void) {
    area = map_at(NULL, 64 * MB, MAP_NORESERVE);
    CHECK(area != MAP_FAILED);
    CHECK_EQ(munmap(area, 64 * MB), 0);
}

// Where it was put, as far as that is the same every time.
static void say(const char* what, char* wanted, size_t size, int flags) {
    char* got = map_at(wanted, size, flags);
    if (got == MAP_FAILED) {
        printf("%s: %s\n", what, strerrorname_np(errno));
        return;
    }
    uintptr_t page = (uintptr_t)wanted & -(uintptr_t)PAGE;
    int below = (uintptr_t)got < 1ul << 47;
    printf("%s: %s, below 47 bits %d\n", what, (uintptr_t)got == page ? "there" : "elsewhere",
           below);
    *got = 1;
    CHECK_EQ(munmap(got, size), 0);
}

static int data;

static void* stack_address(void) { return __builtin_frame_address(0); }

static void hints(void) {
    find_area();
    say("free", area + 8 * MB, PAGE, 0);
    say("free, in a page", area + 8 * MB + 123, PAGE, 0);
    say("free, of odd size", area + 8 * MB, PAGE + 1, 0);
    say("free, much", area + 8 * MB, 16 * MB, 0);
    char* taken = map_at(area + 8 * MB, 4 * PAGE, 0);
    CHECK(taken == area + 8 * MB);
    say("taken", taken, PAGE, 0);
    say("taken in the end", taken - PAGE, 2 * PAGE, 0);
    say("just before it", taken - PAGE, PAGE, 0);
    say("just behind it", taken + 4 * PAGE, PAGE, 0);
    say("no replacing, taken", taken, PAGE, MAP_FIXED_NOREPLACE);
    say("no replacing, taken in the end", taken - PAGE, 2 * PAGE, MAP_FIXED_NOREPLACE);
    say("no replacing, free", taken - PAGE, PAGE, MAP_FIXED_NOREPLACE);
    say("no replacing, odd", taken - 2 * PAGE + 1, PAGE, MAP_FIXED_NOREPLACE);
    say("no replacing, of no size", taken - PAGE, 0, MAP_FIXED_NOREPLACE);
    CHECK_EQ(munmap(taken + PAGE, PAGE), 0);
    say("the hole", taken + PAGE, PAGE, 0);
    say("the hole, fixed", taken + PAGE, PAGE, MAP_FIXED);
    say("more than the hole", taken + PAGE, 2 * PAGE, 0);
    say("more than the hole, no replacing", taken + PAGE, 2 * PAGE, MAP_FIXED_NOREPLACE);
    CHECK_EQ(munmap(taken, 4 * PAGE), 0);
    say("the stack's", stack_address(), PAGE, 0);
    say("the program's data", (char*)&data, PAGE, 0);
    say("no replacing, the stack's", (char*)((uintptr_t)stack_address() & -(uintptr_t)PAGE), PAGE,
        MAP_FIXED_NOREPLACE);
}

static void edges(void) {
    char* last = (char*)(1ul << 47) - PAGE;
    say("1", (char*)1, PAGE, 0);
    say("a page", (char*)PAGE, PAGE, 0);
    say("64 kB", (char*)0x10000, PAGE, 0);
    say("64 kB less one", (char*)0xffff, PAGE, 0);
    say("1 MB", (char*)0x100000, PAGE, 0);
    say("the last page", last, PAGE, 0);
    say("the last but one", last - PAGE, PAGE, 0);
    say("the last page and more", last, 2 * PAGE, 0);
    say("the last page, fixed", last, PAGE, MAP_FIXED);
    say("the last but one, no replacing", last - PAGE, PAGE, MAP_FIXED_NOREPLACE);
    say("the last page, no replacing", last, PAGE, MAP_FIXED_NOREPLACE);
    say("beyond", last + PAGE, PAGE, 0);
    say("far beyond", (char*)(1ul << 55), PAGE, 0);
    say("the kernel's", (char*)-(1ul << 40), PAGE, 0);
    say("the very last", (char*)-(uintptr_t)PAGE, PAGE, 0);
    say("the very last, much", (char*)-(uintptr_t)PAGE, 16 * MB, 0);
    say("beyond, no replacing", last + PAGE, PAGE, MAP_FIXED_NOREPLACE);
    say("far beyond, no replacing", (char*)(1ul << 55), PAGE, MAP_FIXED_NOREPLACE);
    say("far beyond, fixed", (char*)(1ul << 55), PAGE, MAP_FIXED);
    say("too much", NULL, 1ul << 47, MAP_NORESERVE);
    say("too much, with a hint", area, 1ul << 47, MAP_NORESERVE);
    say("far too much", area, -(size_t)PAGE, MAP_NORESERVE);
    say("wraps", area, -(size_t)1, MAP_NORESERVE);
}

static void of_files(void) {
    FILE* file = tmpfile();
    CHECK_EQ(ftruncate(fileno(file), 4 * PAGE), 0);
    char* at = area + 24 * MB;
    for (int shared = 0; shared < 2; shared++) {
        int flags = shared ? MAP_SHARED : MAP_PRIVATE;
        char* got = mmap(at, 4 * PAGE, PROT_READ | PROT_WRITE, flags, fileno(file), 0);
        printf("file: %d\n", got == at);
        char* again = mmap(at + PAGE, PAGE, PROT_READ, flags, fileno(file), 0);
        printf("again: %d\n", again != MAP_FAILED && (again < got || again >= got + 4 * PAGE));
        CHECK_EQ(munmap(again, PAGE), 0);
        TRY(mmap(at, PAGE, PROT_READ, flags | MAP_FIXED_NOREPLACE, fileno(file), 0));
        CHECK_EQ(munmap(got, 4 * PAGE), 0);
        got = mmap(at, PAGE, PROT_READ, flags | MAP_FIXED_NOREPLACE, fileno(file), 0);
        printf("no replacing: %d\n", got == at);
        CHECK_EQ(munmap(got, PAGE), 0);
        got = mmap((char*)(1ul << 55), PAGE, PROT_READ, flags, fileno(file), 0);
        printf("far beyond: %d\n", got != MAP_FAILED);
        CHECK_EQ(munmap(got, PAGE), 0);
    }
    fclose(file);
    char* got = mmap(at, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    printf("shared: %d\n", got == at);
    CHECK_EQ(munmap(got, PAGE), 0);
}

static void other_flags(void) {
    char* at = area + 32 * MB;
    say("noreserve", at, PAGE, MAP_NORESERVE);
    say("populate", at, PAGE, MAP_POPULATE);
    say("stack", at, PAGE, MAP_STACK);
    say("grows down", at, PAGE, MAP_GROWSDOWN);
    say("locked", at, PAGE, MAP_LOCKED);
    char* low = map_at(at, PAGE, MAP_32BIT);
    printf("32 bits: below 2 GB %d\n", (uintptr_t)low + PAGE <= 1ul << 31);
    CHECK_EQ(munmap(low, PAGE), 0);
    low = map_at((char*)0x50000000, PAGE, MAP_32BIT);
    printf("32 bits, a good one: %d\n", low == (char*)0x50000000);
    CHECK_EQ(munmap(low, PAGE), 0);
    low = map_at((char*)0x20000000, PAGE, MAP_32BIT);
    printf("32 bits, a low one: %d\n", low == (char*)0x20000000);
    CHECK_EQ(munmap(low, PAGE), 0);
}

// What is mapped without a hint is below 47 bits, and does not meet what is there.
static void many(void) {
    static char* got[200];
    int bad = 0;
    for (int i = 0; i < 200; i++) {
        got[i] = map_at(i % 3 ? got[i - 1] : NULL, PAGE, 0);
        for (int k = 0; k < i; k++) bad += got[k] == got[i];
        bad += (uintptr_t)got[i] >> 47 != 0;
    }
    for (int i = 0; i < 200; i++) CHECK_EQ(munmap(got[i], PAGE), 0);
    printf("bad: %d\n", bad);
}

int main(void) {
    manual_begin();
    hints();
    edges();
    of_files();
    other_flags();
    many();
    return guest_passed();
}
