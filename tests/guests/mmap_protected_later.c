// A private mapping of a file that was read-only and is made writable later: MADV_DONTNEED brings
// the file's content back, as it is by then, also in children and once nobody has the file open.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

enum { PAGE = 4096, PAGES = 8 };

static char mark(int page, int round) { return (char)('a' + (page + round) % 26); }

static void write_marks(int fd, int round) {
    for (int i = 0; i < PAGES; i++) {
        char c = mark(i, round);
        CHECK_EQ(pwrite(fd, &c, 1, (off_t)i * PAGE), 1);
    }
}

static void check_marks(const volatile char* text, int first, int end, int round) {
    for (int i = first; i < end; i++) CHECK_EQ(text[i * PAGE], mark(i, round));
}

static void drop_and_see(volatile char* text, int fd, int round) {
    for (int i = 0; i < PAGES; i++) text[i * PAGE] = 1;
    for (int i = 0; i < PAGES; i++) CHECK_EQ(text[i * PAGE], 1);
    CHECK_EQ(madvise((char*)text + 2 * PAGE, 3 * PAGE, MADV_DONTNEED), 0);
    check_marks(text, 2, 5, round);
    CHECK_EQ(text[PAGE], 1);
    CHECK_EQ(text[5 * PAGE], 1);
    write_marks(fd, round + 1);
    CHECK_EQ(madvise((char*)text, PAGES * PAGE, MADV_DONTNEED), 0);
    check_marks(text, 0, PAGES, round + 1);
}

static void with(int fd, int read_first, int pages_at_once) {
    write_marks(fd, 0);
    volatile char* text = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(text != MAP_FAILED);
    check_marks(text, 0, read_first, 0);
    for (int i = 0; i < PAGES; i += pages_at_once) {
        CHECK_EQ(
            mprotect((char*)text + i * PAGE, (size_t)pages_at_once * PAGE, PROT_READ | PROT_WRITE),
            0);
    }
    check_marks(text, 0, PAGES, 0);
    for (int round = 0; round < 3; round++) {
        drop_and_see(text, fd, round);
        write_marks(fd, round + 1);
    }
    text[PAGE] = 9;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQ(text[PAGE], 9);
        check_marks(text, 2, PAGES, 3);
        drop_and_see(text, fd, 3);
        _exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(text[PAGE], 9);
    CHECK_EQ(munmap((char*)text, PAGES * PAGE), 0);
}

int main(void) {
    int fd = open("data", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK_EQ(ftruncate(fd, PAGES * PAGE), 0);
    with(fd, 0, PAGES);
    with(fd, PAGES, PAGES);
    with(fd, 4, 2);

    // It is read-only again, then unreachable by its name or a descriptor.
    write_marks(fd, 7);
    volatile char* text = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK_EQ(unlink("data"), 0);
    CHECK_EQ(close(fd), 0);
    for (int round = 0; round < 3; round++) {
        CHECK_EQ(mprotect((char*)text, PAGES * PAGE, PROT_READ | PROT_WRITE), 0);
        for (int i = 0; i < PAGES; i++) text[i * PAGE] = 2;
        CHECK_EQ(mprotect((char*)text, PAGES * PAGE, PROT_READ), 0);
        CHECK_EQ(madvise((char*)text, PAGES / 2 * PAGE, MADV_DONTNEED), 0);
        check_marks(text, 0, PAGES / 2, 7);
        for (int i = PAGES / 2; i < PAGES; i++) CHECK_EQ(text[i * PAGE], 2);
    }
    return guest_passed();
}
