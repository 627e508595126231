// mremap of shared mappings: they move, grow over the file's end and stay views of the same file;
// with MREMAP_DONTUNMAP the file is seen at both places.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

enum { PAGE = 4096, PAGES = 6 };
static sigjmp_buf escape;

static void on_fault(int number) { siglongjmp(escape, number); }

static int signal_of_read(volatile char* at) {
    int number = sigsetjmp(escape, 1);
    if (number == 0) (void)*at;
    return number;
}

static char* reserve(void) {
    char* area = mmap(NULL, 64 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(area != MAP_FAILED);
    return area;
}

int main(void) {
    signal(SIGBUS, on_fault);
    signal(SIGSEGV, on_fault);
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    CHECK_EQ(ftruncate(fd, PAGES * PAGE), 0);
    char* view = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char* first = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(view != MAP_FAILED && first != MAP_FAILED);
    guest_fill(first, PAGES * PAGE, 1);
    char* target = reserve() + 8 * PAGE;
    char* moved = mremap(first, PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target);
    CHECK(moved == target);
    CHECK_EQ(signal_of_read(first), SIGSEGV);
    CHECK(guest_is_filled(moved, PAGES * PAGE, 1));
    for (int i = 0; i < 30; i++) {
        snprintf(moved + PAGE, 16, "moved %d", i);
        CHECK(strcmp(view + PAGE, moved + PAGE) == 0);
        snprintf(view + 2 * PAGE, 16, "view %d", i);
        CHECK(strcmp(view + 2 * PAGE, moved + 2 * PAGE) == 0);
    }
    char* grown = mremap(moved, PAGES * PAGE, 2 * PAGES * PAGE, MREMAP_MAYMOVE);
    CHECK(grown != MAP_FAILED);
    CHECK_EQ(signal_of_read(grown + PAGES * PAGE), SIGBUS);
    CHECK_EQ(ftruncate(fd, 2 * PAGES * PAGE), 0);
    CHECK_EQ(grown[PAGES * PAGE], 0);
    strcpy(grown + PAGES * PAGE + 9, "beyond the old end");
    char* kept =
        mremap(grown, 2 * PAGES * PAGE, 2 * PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    CHECK(kept != MAP_FAILED && kept != grown);
    pid_t child = fork();
    if (child == 0) {
        strcpy(kept + 3 * PAGE, "from the child");
        CHECK(strcmp(grown + 3 * PAGE, "from the child") == 0);
        _exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK(strcmp(view + 3 * PAGE, "from the child") == 0);
    CHECK(strcmp(grown + 3 * PAGE, "from the child") == 0);
    CHECK(strcmp(grown + PAGES * PAGE + 9, "beyond the old end") == 0);
    char* cut = mremap(kept, 2 * PAGES * PAGE, PAGE, 0);
    CHECK(cut == kept);
    CHECK_EQ(signal_of_read(kept + PAGE), SIGSEGV);
    char back[30];
    CHECK_EQ(pread(fd, back, sizeof back, PAGES * PAGE + 9), sizeof back);
    CHECK(strcmp(back, "beyond the old end") == 0);
    CHECK_ERRNO((intptr_t)mremap(view, PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP), EINVAL);
    CHECK_ERRNO((intptr_t)mremap(view, PAGE, PAGE, MREMAP_FIXED, target), EINVAL);
    return guest_passed();
}
