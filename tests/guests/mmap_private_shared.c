// What is written through a shared mapping of a file is seen in private mappings of it, on pages
// that have not been touched there: by readers and by who writes to the rest of such a page, in
// children, by system calls, and whichever mapping was first.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

enum { PAGE = 4096, PAGES = 24 };

static int make_file(const char* name, int pages) {
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(ftruncate(fd, (off_t)pages * PAGE), 0);
    return fd;
}

static char* map(int fd, int prot, int flags) {
    char* memory = mmap(NULL, PAGES * PAGE, prot, flags, fd, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static void write_page(char* memory, int page, int seed) {
    guest_fill(memory + page * PAGE, PAGE, (uint64_t)(seed * 1000 + page));
}

static void shows_page(const char* memory, int page, int seed) {
    CHECK(guest_is_filled(memory + page * PAGE, PAGE, (uint64_t)(seed * 1000 + page)));
}

// Page by page: those that follow are not touched yet when one is read.
static void one_after_the_other(int private_first, int prot) {
    int fd = make_file("data", PAGES);
    char* private = private_first ? map(fd, prot, MAP_PRIVATE) : NULL;
    char* shared = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
    if (!private) private = map(fd, prot, MAP_PRIVATE);
    for (int page = 0; page < PAGES; page++) {
        write_page(shared, page, 1);
        shows_page(private, page, 1);
    }
    CHECK_EQ(munmap(private, PAGES * PAGE), 0);
    CHECK_EQ(munmap(shared, PAGES * PAGE), 0);
    CHECK_EQ(close(fd), 0);
}

static void written_pages_are_its_own(void) {
    int fd = make_file("data", PAGES);
    char* private = map(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    char* shared = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
    for (int page = 0; page < PAGES; page++) write_page(shared, page, 2);
    for (int page = 0; page < PAGES; page += 2) private[page * PAGE] ^= 0x55;
    for (int page = 0; page < PAGES; page++) {
        CHECK_EQ(memcmp(private + page * PAGE + 1, shared + page * PAGE + 1, PAGE - 1), 0);
        CHECK_EQ(private[page * PAGE] ^ shared[page * PAGE], page % 2 ? 0 : 0x55);
    }
    memset(shared, 7, PAGES * PAGE);
    CHECK_EQ(private[0] == 7 && private[1] == 7, 0);
    CHECK_EQ(madvise(private, PAGES * PAGE, MADV_DONTNEED), 0);
    CHECK_EQ(memcmp(private, shared, PAGES * PAGE), 0);
    CHECK_EQ(munmap(private, PAGES * PAGE), 0);
    CHECK_EQ(munmap(shared, PAGES * PAGE), 0);
    CHECK_EQ(close(fd), 0);
}

// The kernel reads the memory for write(2).
static void by_calls(void) {
    int fd = make_file("data", PAGES), copy = make_file("copy", 0);
    char* private = map(fd, PROT_READ, MAP_PRIVATE);
    char* shared = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
    for (int page = 0; page < PAGES; page++) write_page(shared, page, 3);
    CHECK_EQ(write(copy, private, PAGES * PAGE), PAGES * PAGE);
    char page[PAGE];
    for (int i = 0; i < PAGES; i++) {
        CHECK_EQ(pread(copy, page, PAGE, (off_t)i * PAGE), PAGE);
        CHECK_EQ(memcmp(page, shared + i * PAGE, PAGE), 0);
    }
    CHECK_EQ(munmap(private, PAGES * PAGE), 0);
    CHECK_EQ(munmap(shared, PAGES * PAGE), 0);
    CHECK_EQ(close(fd) | close(copy), 0);
}

static void wait_for(pid_t child) {
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

// Parent and child write in turn what the other one has not touched in private. (A fork may touch
// what the program may write.)
static void with_children(void) {
    int fd = make_file("data", PAGES);
    char* shared = map(fd, PROT_READ | PROT_WRITE, MAP_SHARED);
    char* private = map(fd, PROT_READ, MAP_PRIVATE);
    for (int page = 0; page < PAGES / 2; page++) write_page(shared, page, 4);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        for (int page = 0; page < PAGES / 2; page++) shows_page(private, page, 4);
        char* again = map(fd, PROT_READ, MAP_PRIVATE);
        for (int page = PAGES / 2; page < PAGES; page++) {
            write_page(shared, page, 5);
            shows_page(again, page, 5);
        }
        _exit(0);
    }
    wait_for(child);
    for (int page = 0; page < PAGES; page++) shows_page(private, page, page < PAGES / 2 ? 4 : 5);
    CHECK_EQ(munmap(private, PAGES * PAGE), 0);
    CHECK_EQ(munmap(shared, PAGES * PAGE), 0);
    CHECK_EQ(close(fd), 0);
}

int main(void) {
    for (int first = 0; first <= 1; first++) {
        one_after_the_other(first, PROT_READ);
        one_after_the_other(first, PROT_READ | PROT_WRITE);
    }
    written_pages_are_its_own();
    by_calls();
    with_children();
    return guest_passed();
}
