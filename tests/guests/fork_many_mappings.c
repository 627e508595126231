// A process with very many mappings forks: with little memory in use, and with much, when its child
// has none of it. The child runs for long, shares memory and maps more.
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

enum { PAGE = 4096, MAPPINGS = 26000, TOUCHED = 16 };

static char* memory;
static int* shared;

static char* page(int i) { return memory + (size_t)i * PAGE; }

static void fork_and_check(int expected_of_seven, int wiped) {
    shared[0] = 1;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        guest_compute(100);
        for (int i = 0; i < MAPPINGS; i += TOUCHED) CHECK_EQ(*page(i), wiped ? 0 : (char)i);
        for (int i = 1; i < MAPPINGS; i += 100) CHECK_EQ(*page(i), wiped ? 0 : expected_of_seven);
        for (int i = 1; i < MAPPINGS; i += 100) *page(i) = 9;
        void* more = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(more != MAP_FAILED);
        shared[1] = shared[0] + 1;
        _exit(5);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 5 << 8);
    CHECK_EQ(shared[1], 2);
    for (int i = 1; i < MAPPINGS; i += 100) CHECK_EQ(*page(i), expected_of_seven);
}

int main(void) {
    memory = mmap(NULL, (size_t)MAPPINGS * PAGE, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED && shared != MAP_FAILED);
    for (int i = 0; i < MAPPINGS; i += TOUCHED) *page(i) = (char)i;
    for (int i = 0; i < MAPPINGS; i += 2) CHECK_EQ(mprotect(page(i), PAGE, PROT_READ), 0);
    fork_and_check(0, 0);
    for (int i = 1; i < MAPPINGS; i += 2) *page(i) = 7;
    fork_and_check(7, 0);
    CHECK_EQ(madvise(memory, (size_t)MAPPINGS * PAGE, MADV_WIPEONFORK), 0);
    fork_and_check(7, 1);
    return guest_passed();
}
