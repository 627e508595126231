// brk(2) and sbrk: growth, shrinking, limits, neighbours.
#include <sys/resource.h>

#include "manual.h"

static char* now(void) { return (char*)syscall(SYS_brk, 0); }

static void growth(void) {
    char* begin = now();
    SAY("%d", now() == begin);
    SAY("%d", (char*)syscall(SYS_brk, 1) == begin);  // below: nothing
    SAY("%d", (char*)syscall(SYS_brk, (char*)-1L) == begin);
    SAY("%d", (char*)syscall(SYS_brk, begin + 10000) == begin + 10000);
    for (int i = 0; i < 10000; i++) CHECK_EQ(begin[i], 0);
    memset(begin, 'x', 10000);
    SAY("%d", (char*)syscall(SYS_brk, begin + 10001) == begin + 10001);
    SAY("%d", (char*)syscall(SYS_brk, begin + 5) == begin + 5);
    SAY("%c", begin[4]);
    SAY("%d", (char*)syscall(SYS_brk, begin + 20000) == begin + 20000);
    SAY("zero again %d, kept %d", begin[9000] == 0, begin[4] == 'x');
    SAY("%d", sbrk(0) != (void*)-1);
    SAY("%d", (char*)syscall(SYS_brk, begin) == begin);
}

static void neighbours(void) {
    char* begin = now();
    char* page = (char*)(((uintptr_t)begin + 4095) & ~4095UL);
    char* wall = (char*)mmap(page + 65536, 4096, PROT_READ,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    SAY("%d", wall == page + 65536);
    SAY("up to it: %d", (char*)syscall(SYS_brk, page + 65536) == page + 65536);
    SAY("beyond: %d", (char*)syscall(SYS_brk, page + 65537) == page + 65536);
    munmap(wall, 4096);
    SAY("without it: %d", (char*)syscall(SYS_brk, page + 80000) == page + 80000);
    // A hole in the heap is the program's own doing.
    SAY("%d", munmap(page + 8192, 4096));
    SAY("%d", (char*)syscall(SYS_brk, page + 90000) == page + 90000);
    SAY("%d", (char*)syscall(SYS_brk, page + 4096) == page + 4096);
    page[0] = 1;
    TRY(mprotect(page, 4096, PROT_READ));
    SAY("%d", (char*)syscall(SYS_brk, page + 12288) == page + 12288);
    page[4096] = 2;
    SAY("%d %d", page[0], page[4096]);
}

static void limits(void) {
    char* begin = now();
    struct rlimit limit = {1 << 20, 1 << 20};
    TRY(setrlimit(RLIMIT_DATA, &limit));
    SAY("%d", (char*)syscall(SYS_brk, begin + (4 << 20)) == begin);
    TRY(sbrk(4 << 20));
    SAY("%d", (char*)syscall(SYS_brk, begin + 4096) == begin + 4096);
    TRY(sbrk(1L << 50));
}

static void children(void) {
    char* begin = now();
    syscall(SYS_brk, begin + 8192);
    begin[100] = 'p';
    if (fork() == 0) {
        SAY("%d %c", now() == begin + 8192, begin[100]);
        syscall(SYS_brk, begin + 100000);
        begin[90000] = begin[100] = 'c';
        _exit(0);
    }
    wait(NULL);
    SAY("%d %c", now() == begin + 8192, begin[100]);
}

int main(void) {
    manual_begin();
    manual_in_child("growth", growth);
    manual_in_child("neighbours", neighbours);
    manual_in_child("limits", limits);
    manual_in_child("children", children);
    return guest_passed();
}
