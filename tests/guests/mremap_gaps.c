// mremap over several mappings and over what lies between them.
#include <sys/mman.h>

#include "guest.h"

enum { PAGE = 4096, SPACE = 64, PAGES = 12 };

static char* room(void) {
    char* at = mmap(NULL, SPACE * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    CHECK_EQ(munmap(at, SPACE * PAGE), 0);
    return at;
}

static void fill(char* at, int pages, int prot, int kind) {
    CHECK(mmap(at, (size_t)pages * PAGE, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS | MAP_FIXED,
               -1, 0) == at);
    for (int i = 0; i < pages; i++) at[i * PAGE] = (char)('a' + i);
    if (prot != (PROT_READ | PROT_WRITE)) CHECK_EQ(mprotect(at, (size_t)pages * PAGE, prot), 0);
}

static int is_mapped(char* at) {
    unsigned char there;
    return mincore(at, PAGE, &there) == 0;
}

static void show(const char* what, char* from, char* to, void* result) {
    printf("%s: %s %d:", what,
           result == MAP_FAILED ? "failed"
           : result == to       ? "moved"
                                : "at",
           result == MAP_FAILED ? errno : 0);
    char* places[2] = {from, to};
    for (int p = 0; p < 2; p++) {
        printf(p ? " to " : " from ");
        for (int i = 0; i < PAGES; i++) {
            char* at = places[p] + i * PAGE;
            putchar(!is_mapped(at) ? '-' : *at ? *at : '0');
        }
    }
    printf("\n");
}

enum { RW = PROT_READ | PROT_WRITE };

static void attempt(const char* what, const char* plan, int flags, int old_pages, int new_pages) {
    char *from = room(), *to = from + SPACE / 2 * PAGE;
    for (int i = 0; plan[i];) {
        int n = 1;
        while (plan[i + n] == plan[i]) n++;
        if (plan[i] == 'p') fill(from + i * PAGE, n, RW, MAP_PRIVATE);
        if (plan[i] == 'r') fill(from + i * PAGE, n, PROT_READ, MAP_PRIVATE);
        if (plan[i] == 's') fill(from + i * PAGE, n, RW, MAP_SHARED);
        i += n;
    }
    void* result = mremap(from, (size_t)old_pages * PAGE, (size_t)new_pages * PAGE, flags, to);
    show(what, from, to, result);
    munmap(from, SPACE * PAGE);
}

int main(void) {
    int moves = MREMAP_MAYMOVE | MREMAP_FIXED;
    attempt("neighbours", "pppprrrr", moves, 8, 8);
    attempt("gap between", "ppp--rrr", moves, 8, 8);
    attempt("gap between alike", "ppp--ppp", moves, 8, 8);
    attempt("gap at the end", "ppprr---", moves, 8, 8);
    attempt("gap at the end of one", "ppp-----", moves, 8, 8);
    attempt("gap at the beginning", "--ppprrr", moves, 8, 8);
    attempt("nothing", "--------", moves, 8, 8);
    attempt("with shared", "pppsssrr", moves, 8, 8);
    attempt("shared first", "ssspprr-", moves, 7, 7);
    attempt("two shared", "ssss-sss", moves, 8, 8);
    attempt("shared and a gap", "ss--pprr", moves, 8, 8);
    attempt("several gaps", "p-r-s-p-r", moves, 9, 9);
    attempt("shrinks by moving", "pppprrrr", moves, 8, 6);
    attempt("shrinks by moving, gap", "ppp--rrr", moves, 8, 6);
    attempt("shrinks to one", "ppp--rrr", moves, 8, 2);
    attempt("grows by moving", "pppprrrr", moves, 8, 9);
    attempt("shrinks in place over a gap", "ppp--rrr", MREMAP_MAYMOVE, 8, 2);
    attempt("shrinks in place at a gap", "ppp--rrr", MREMAP_MAYMOVE, 8, 4);
    attempt("same size over a gap", "ppp--rrr", MREMAP_MAYMOVE, 8, 8);
    attempt("same size, several", "ppprrr", MREMAP_MAYMOVE, 6, 6);
    attempt("grows, gap", "ppp--rrr", MREMAP_MAYMOVE, 8, 10);
    attempt("keeps several", "ppprrr", moves | MREMAP_DONTUNMAP, 6, 6);
    attempt("keeps over a gap", "ppp-rr", moves | MREMAP_DONTUNMAP, 6, 6);
    return guest_passed();
}
