// A child has what grows downwards: what it was born with, what it maps itself, and both whether it
// touches at once, after a while, or lets a system call touch.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

enum { PAGE = 4096, AREA = 2 << 20, GROWTH = 40, LATER_US = 60000 };

static char* map_growing(void) {
    char* area = mmap(NULL, AREA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(area != MAP_FAILED);
    CHECK_EQ(munmap(area, AREA), 0);
    char* top = area + AREA - PAGE;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE;
    CHECK(mmap(top, PAGE, PROT_READ | PROT_WRITE, flags, -1, 0) == top);
    return top;
}

static void grow(char* top, int from, int until) {
    for (int i = from; i < until; i++) {
        CHECK_EQ(top[-PAGE * i + 9], 0);
        top[-PAGE * i + 8] = (char)i;
    }
    for (int i = from; i < until; i++) CHECK_EQ(top[-PAGE * i + 8], (char)i);
}

static void wait_for(pid_t child) {
    int status = -1;
    CHECK(child > 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

static void inherited(int grown, int later) {
    char* top = map_growing();
    grow(top, 0, grown);
    pid_t child = fork();
    if (child == 0) {
        if (later) usleep(LATER_US);
        grow(top, grown, grown + GROWTH);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            grow(top, grown + GROWTH, grown + 2 * GROWTH);
            _exit(0);
        }
        wait_for(grandchild);
        _exit(0);
    }
    wait_for(child);
    grow(top, grown, grown + GROWTH);  // the parent's own
    CHECK_EQ(munmap(top - PAGE * (grown + GROWTH), PAGE * (grown + GROWTH + 1)), 0);
}

static void own(int later) {
    pid_t child = fork();
    if (child == 0) {
        char* top = map_growing();
        grow(top, 0, GROWTH);
        if (later) usleep(LATER_US);
        grow(top, GROWTH, 2 * GROWTH);
        _exit(0);
    }
    wait_for(child);
}

// Nothing is there that grows: SIGSEGV as ever.
static void no_growth(void) {
    char* area = mmap(NULL, AREA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_EQ(munmap(area, AREA), 0);
    char* top = map_growing();
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQ(munmap(top, PAGE), 0);
        *(volatile char*)(top - 8) = 1;
        _exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), 11);
    CHECK_EQ(munmap(top, PAGE), 0);
}

int main(void) {
    for (int later = 0; later < 2; later++) {
        inherited(1, later);
        inherited(GROWTH, later);
        own(later);
    }
    no_growth();
    return guest_passed();
}
