// mremap makes a part of a mapping longer, here or elsewhere: what is new is empty, and is not what
// comes next of the mapping that the part was of.
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

enum { PAGE = 4096, PAGES = 8 };

static char* map(void) {
    char* memory =
        mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    for (int i = 0; i < PAGES; i++) memory[i * PAGE] = (char)(i + 1);
    return memory;
}

static void check(const char* memory, int from, int filled, int pages) {
    for (int i = 0; i < pages; i++) {
        CHECK_EQ(memory[i * PAGE], i < filled ? from + i + 1 : 0);
        CHECK(getppid() > 0);
    }
}

static void write_all(char* memory, int pages, char what) {
    for (int i = 0; i < pages; i++) memory[i * PAGE + 9] = (char)(what + i);
    CHECK(getppid() > 0);
    for (int i = 0; i < pages; i++) CHECK_EQ(memory[i * PAGE + 9], what + i);
}

static void first_part(int locked) {
    char* memory = map();
    if (locked) CHECK_EQ(mlock(memory, 4 * PAGE), 0);
    char* moved = mremap(memory, 4 * PAGE, 7 * PAGE, MREMAP_MAYMOVE);
    CHECK(moved != MAP_FAILED && moved != memory);
    check(moved, 0, 4, 7);
    check(memory + 4 * PAGE, 4, 4, 4);
    write_all(moved, 7, 'a');
    write_all(memory + 4 * PAGE, 4, 'A');
    CHECK_EQ(moved[5 * PAGE + 9], 'a' + 5);
    char* again = mremap(moved, 7 * PAGE, 9 * PAGE, MREMAP_MAYMOVE);
    CHECK(again != MAP_FAILED);
    for (int i = 0; i < 7; i++) CHECK_EQ(again[i * PAGE + 9], 'a' + i);
    CHECK_EQ(again[8 * PAGE], 0);
    CHECK_EQ(munmap(again, 9 * PAGE), 0);
    CHECK_EQ(munmap(memory + 4 * PAGE, 4 * PAGE), 0);
}

// The last part goes away, and the first one grows to where it was.
static void in_place(void) {
    char* memory = map();
    char* away =
        mremap(memory + 4 * PAGE, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, map());
    CHECK(away != MAP_FAILED);
    char* grown = mremap(memory, 4 * PAGE, 6 * PAGE, 0);
    if (grown == MAP_FAILED) grown = mremap(memory, 4 * PAGE, 6 * PAGE, MREMAP_MAYMOVE);
    CHECK(grown != MAP_FAILED);
    check(grown, 0, 4, 6);
    check(away, 4, 4, 4);
    write_all(grown, 6, 'a');
    write_all(away, 4, 'A');
    for (int i = 0; i < 6; i++) CHECK_EQ(grown[i * PAGE + 9], 'a' + i);
    CHECK_EQ(munmap(grown, 6 * PAGE), 0);
    CHECK_EQ(munmap(away, PAGES * PAGE), 0);
}

static void of_file(void) {
    FILE* file = tmpfile();
    for (int i = 0; i < PAGES * PAGE; i++) CHECK(fputc('a' + i / PAGE, file) != EOF);
    CHECK_EQ(fflush(file), 0);
    char* memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
    CHECK(memory != MAP_FAILED);
    memory[PAGE] = 'X';
    memory[5 * PAGE] = 'Y';
    char* moved = mremap(memory, 4 * PAGE, 7 * PAGE, MREMAP_MAYMOVE);
    CHECK(moved != MAP_FAILED);
    CHECK(moved[0] == 'a' && moved[PAGE] == 'X' && moved[3 * PAGE] == 'd');
    CHECK(moved[4 * PAGE] == 'e' && moved[5 * PAGE] == 'f' && moved[6 * PAGE] == 'g');
    CHECK(memory[4 * PAGE] == 'e' && memory[5 * PAGE] == 'Y');
    CHECK_EQ(munmap(moved, 7 * PAGE), 0);
    CHECK_EQ(munmap(memory + 4 * PAGE, 4 * PAGE), 0);
    fclose(file);
}

static void try_all(void) {
    for (int locked = 0; locked < 2; locked++) first_part(locked);
    in_place();
    of_file();
}

int main(void) {
    try_all();
    pid_t child = fork();
    if (child == 0) {
        usleep(50000);  // not young any more
        try_all();
        _exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    return guest_passed();
}
