// Memory that a child is to find empty, madvise(2): asked for before a fork, or by the child
// itself, it holds for the child's own children, whose memory may be copied in another way.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

enum { size = 4096, much = 48 << 20 };

static int grandchild_sees(char* wiped, char* kept) {
    usleep(100000);
    char* big = malloc(much);
    CHECK(big);
    memset(big, 7, much);
    *wiped = 42;
    *kept = 43;
    pid_t grandchild = fork();
    CHECK(grandchild >= 0);
    if (grandchild == 0) _exit(*wiped == 0 && *kept == 43 && big[much - 1] == 7 ? 5 : 6);
    int status;
    CHECK_EQ(waitpid(grandchild, &status, 0), grandchild);
    free(big);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static char* map(void) {
    char* page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    return page;
}

int main(void) {
    char* before = map();
    char* kept = map();
    char* later = map();
    CHECK_EQ(madvise(before, size, MADV_WIPEONFORK), 0);
    for (int own = 0; own < 2; own++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            if (own) CHECK_EQ(madvise(later, size, MADV_WIPEONFORK), 0);
            _exit(grandchild_sees(own ? later : before, kept));
        }
        int status;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), 5);
    }
    return guest_passed();
}
