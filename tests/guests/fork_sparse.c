// Children of a process with much memory that is touched here and there: each sees all of it as it
// was at its fork, whatever was written, given back or moved since the fork before.
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

#define PAGE 4096
#define PAGES (96 * 256)  // 96 MiB
#define STEP 16

static unsigned char expected[PAGES];
static unsigned char* memory;

static void put(size_t page, unsigned char value) {
    memory[page * PAGE + page % PAGE] = expected[page] = value;
}

static size_t count_wrong(void) {
    size_t wrong = 0;
    for (size_t page = 0; page < PAGES; page++) {
        wrong += memory[page * PAGE + page % PAGE] != expected[page];
    }
    return wrong;
}

// How many pages the child finds otherwise than they were. It also writes, which is its own affair.
static int wrong_in_child(void) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        size_t wrong = count_wrong();
        memset(memory, 0xee, 64 * PAGE);
        _exit(wrong < 100 ? (int)wrong : 100);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

int main(void) {
    size_t size = (size_t)PAGES * PAGE;
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    CHECK_EQ(madvise(memory, size, MADV_NOHUGEPAGE), 0);
    for (size_t page = 0; page < PAGES; page += STEP) put(page, (unsigned char)(1 + page % 251));
    CHECK_EQ(wrong_in_child(), 0);

    put(3, 5);                                                      // never touched before
    for (size_t page = 0; page < PAGES; page += 640) put(page, 7);  // known to others
    CHECK_EQ(wrong_in_child(), 0);
    CHECK_EQ(wrong_in_child(), 0);

    CHECK_EQ(madvise(memory + 1600 * PAGE, 320 * PAGE, MADV_DONTNEED), 0);
    memset(expected + 1600, 0, 320);
    put(1700, 9);
    put(1701, 10);
    CHECK_EQ(wrong_in_child(), 0);

    unsigned char* to = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(to != MAP_FAILED);
    put(20000, 11);
    put(20003, 12);  // never touched before, and moved before anybody heard of it
    CHECK(mremap(memory, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
    memory = to;
    CHECK_EQ(wrong_in_child(), 0);
    put(20005, 13);
    CHECK_EQ(wrong_in_child(), 0);
    CHECK_EQ(count_wrong(), 0);
    return guest_passed();
}
