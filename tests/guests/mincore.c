// mincore tells which pages are there, wherever the program's threads have touched them.
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

enum { PAGE = 4096, PAGES = 24, MANY = 3000 };

static unsigned char state[MANY];

static void show(const char* what, char* memory) {
    CHECK_EQ(mincore(memory, PAGES * PAGE, state), 0);
    printf("%-10s ", what);
    for (int i = 0; i < PAGES; i++) putchar('0' + (state[i] & 1));
    putchar('\n');
}

int main(void) {
    char* memory =
        mmap(NULL, (size_t)MANY * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    CHECK_EQ(madvise(memory, (size_t)MANY * PAGE, MADV_NOHUGEPAGE), 0);
    show("untouched", memory);
    for (int i = 0; i < PAGES; i += 3) memory[i * PAGE] = 'x';
    show("written", memory);
    CHECK_EQ(getppid() > 0, 1);  // a call on the way
    show("still", memory);
    CHECK_EQ(madvise(memory, 7 * PAGE, MADV_DONTNEED), 0);
    show("dropped", memory);
    CHECK_EQ(memory[PAGE], 0);
    show("read", memory);
    memory[PAGE] = 'r';  // a page of zeros need not be inherited
    CHECK_EQ(fflush(stdout), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        show("inherited", memory);
        memory[5 * PAGE] = 'y';
        show("child's", memory);
        CHECK_EQ(fflush(stdout), 0);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    show("parent's", memory);

    for (int i = 0; i < MANY; i += 2) memory[(size_t)i * PAGE] = 'z';
    CHECK_EQ(mincore(memory, (size_t)MANY * PAGE, state), 0);
    int touched = 0, untouched = 0;  // the latter may be there before they are needed
    for (int i = PAGES; i < MANY; i += 2) touched += state[i] & 1;
    for (int i = PAGES + 1; i < MANY; i += 2) untouched += state[i] & 1;
    printf("of many: %d, and few others: %d\n", touched, untouched < touched / 10);

    CHECK_EQ(munmap(memory + 8 * PAGE, PAGE), 0);
    CHECK_ERRNO(mincore(memory, PAGES * PAGE, state), ENOMEM);
    CHECK_ERRNO(mincore(memory + 8 * PAGE, PAGE, state), ENOMEM);
    CHECK_ERRNO(mincore(memory + 1, PAGE, state), EINVAL);
    CHECK_ERRNO(mincore((void*)-PAGE, PAGE, state), ENOMEM);
    CHECK_ERRNO(mincore(memory, -PAGE, state), ENOMEM);
    CHECK_ERRNO(mincore(memory, PAGE, NULL), EFAULT);
    CHECK_ERRNO(mincore(memory, PAGE, (unsigned char*)(memory + 8 * PAGE)), EFAULT);
    CHECK_EQ(mincore(memory, 0, NULL), 0);
    return guest_passed();
}
