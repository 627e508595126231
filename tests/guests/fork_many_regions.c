// A process with very many pieces of memory, each mapped by a call of its own, forks: when few of
// them are in use, when most are, and when some are gone. The child changes what it got.
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

enum { PAGE = 4096, PIECES = 24000, FEW = 16 };

static char* pieces[PIECES];

static int is_writable(int i) { return i % 2 == 0; }

static char expected(int i, int all) {
    return is_writable(i) && (all || i % FEW == 0) ? (char)(i / 2 + 1) : 0;
}

static void check_some(int all, int changed) {
    for (int i = 0; i < PIECES; i += 3) {
        if (!pieces[i]) continue;
        char now = *(volatile char*)pieces[i];
        CHECK_EQ(now, changed && i % 102 == 0 ? 100 : expected(i, all));
    }
}

static void fork_and_check(int all) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        check_some(all, 0);
        for (int i = 0; i < PIECES; i += 102) {
            if (pieces[i]) *pieces[i] = 100;
        }
        check_some(all, 1);
        _exit(5);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 5 << 8);
    check_some(all, 0);
}

int main(void) {
    for (int i = 0; i < PIECES; i++) {
        int prot = is_writable(i) ? PROT_READ | PROT_WRITE : PROT_READ;
        pieces[i] = mmap(NULL, PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(pieces[i] != MAP_FAILED);
    }
    for (int i = 0; i < PIECES; i += FEW) *pieces[i] = expected(i, 0);
    fork_and_check(0);
    for (int i = 0; i < PIECES; i += 2) *pieces[i] = expected(i, 1);
    fork_and_check(1);
    for (int i = 0; i < PIECES; i += 5) {
        CHECK_EQ(munmap(pieces[i], PAGE), 0);
        pieces[i] = NULL;
    }
    fork_and_check(1);
    return guest_passed();
}
