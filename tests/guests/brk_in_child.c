// A child's heap that grows again is empty, also where memory of its parent's was wiped, and leaves
// the parent's as it is.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

enum { PAGE = 4096, PIECE = 64 * PAGE, BEYOND = 20 << 20 };

static char* grow(char* begin, size_t size) {
    CHECK_EQ(syscall(SYS_brk, begin + size), (long)(begin + size));
    return begin;
}

static void check_child(char* kept, char* gone) {
    for (int round = 0; round < 3; round++) {
        grow(gone, 0);
        grow(gone, PIECE);
        for (size_t i = 0; i < PIECE; i += 64) CHECK_EQ(gone[i], 0);
        memset(gone, 'c' + round, PIECE);
        for (size_t i = 0; i < PIECE; i += 64) CHECK_EQ(gone[i], 'c' + round);
    }
    CHECK_EQ(kept[PIECE - 1], 'k');
}

static void try_advice(int advice) {
    char* kept = (char*)(((unsigned long)sbrk(0) + PAGE - 1) & -(unsigned long)PAGE);
    grow(kept, PIECE);
    char* gone = grow(kept + PIECE, PIECE);
    memset(kept, 'k', PIECE);
    memset(gone, 'g', PIECE);
    CHECK_EQ(madvise(gone, PIECE, advice), 0);
    pid_t child = fork();
    if (child == 0) {
        check_child(kept, gone);
        _exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(gone[0], 'g');
    CHECK_EQ(gone[PIECE - 1], 'g');
    grow(kept, 0);
}

int main(void) {
    // So much memory stays where it is when a process forks.
    char* much = mmap(NULL, BEYOND, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(much != MAP_FAILED);
    memset(much, 'm', BEYOND);
    try_advice(MADV_WIPEONFORK);
    try_advice(MADV_NORMAL);
    CHECK_EQ(much[BEYOND - 1], 'm');
    return guest_passed();
}
