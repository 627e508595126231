// madvise(2) that populates memory, and other advice over several mappings: its errors, and what
// has been done before one is met.
#include <sys/mman.h>
#include <sys/syscall.h>

#include "manual.h"

enum { PAGE = 4096 };

static char* map(int pages) {
    char* memory = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static FILE* file_of(int pages) {
    FILE* file = tmpfile();
    for (int i = 0; i < pages * PAGE; i++) CHECK(fputc('a' + i / PAGE, file) != EOF);
    CHECK_EQ(fflush(file), 0);
    return file;
}

static void resident(const char* name, char* memory, int pages) {
    unsigned char there[64];
    printf("%s: resident", name);
    if (mincore(memory, (size_t)pages * PAGE, there) != 0) {
        printf(" %s\n", strerrorname_np(errno));
        return;
    }
    for (int i = 0; i < pages; i++) printf(" %d", there[i] & 1);
    printf("\n");
}

static void anonymous(void) {
    char* memory = map(16);
    TRY(madvise(memory, 4 * PAGE, MADV_POPULATE_READ));
    TRY(madvise(memory + 4 * PAGE, 4 * PAGE, MADV_POPULATE_WRITE));
    resident("populated", memory, 8);
    for (int i = 0; i < 16 * PAGE; i += PAGE) CHECK_EQ(memory[i], 0);
    TRY(madvise(memory + 1, PAGE, MADV_POPULATE_READ));
    TRY(madvise(memory, 0, MADV_POPULATE_READ));
    TRY(madvise(memory, -PAGE, MADV_POPULATE_READ));
    TRY(madvise(memory, 1, MADV_POPULATE_WRITE));
    CHECK_EQ(mprotect(memory + 4 * PAGE, 4 * PAGE, PROT_READ), 0);
    TRY(madvise(memory, 8 * PAGE, MADV_POPULATE_READ));
    TRY(madvise(memory, 8 * PAGE, MADV_POPULATE_WRITE));
    CHECK_EQ(mprotect(memory + 8 * PAGE, 4 * PAGE, PROT_NONE), 0);
    TRY(madvise(memory, 16 * PAGE, MADV_POPULATE_READ));
    TRY(madvise(memory + 8 * PAGE, PAGE, MADV_POPULATE_READ));
    TRY(madvise(memory + 8 * PAGE, PAGE, MADV_POPULATE_WRITE));
    CHECK_EQ(mprotect(memory + 8 * PAGE, 4 * PAGE, PROT_WRITE), 0);
    TRY(madvise(memory + 8 * PAGE, 4 * PAGE, MADV_POPULATE_READ));
    TRY(madvise(memory + 8 * PAGE, 4 * PAGE, MADV_POPULATE_WRITE));
    CHECK_EQ(mprotect(memory + 8 * PAGE, 4 * PAGE, PROT_EXEC), 0);
    TRY(madvise(memory + 8 * PAGE, 4 * PAGE, MADV_POPULATE_READ));
    TRY(madvise(memory + 8 * PAGE, 4 * PAGE, MADV_POPULATE_WRITE));
    CHECK_EQ(munmap(memory, 16 * PAGE), 0);
    TRY(madvise(memory, 4 * PAGE, MADV_POPULATE_READ));
    TRY(madvise(memory, 4 * PAGE, MADV_POPULATE_WRITE));
}

static void with_holes(void) {
    char* memory = map(12);
    CHECK_EQ(munmap(memory + 4 * PAGE, 4 * PAGE), 0);
    TRY(madvise(memory, 12 * PAGE, MADV_POPULATE_WRITE));
    resident("before the hole", memory, 4);
    resident("behind it", memory + 8 * PAGE, 4);
    TRY(madvise(memory + 4 * PAGE, 8 * PAGE, MADV_POPULATE_READ));
    resident("behind it", memory + 8 * PAGE, 4);
    memset(memory, 1, 4 * PAGE);
    memset(memory + 8 * PAGE, 2, 4 * PAGE);
    TRY(madvise(memory, 12 * PAGE, MADV_DONTNEED));
    printf("%d %d\n", memory[0], memory[8 * PAGE]);
    CHECK_EQ(munmap(memory, 12 * PAGE), 0);
    memory = map(12);
    CHECK_EQ(munmap(memory + 4 * PAGE, 4 * PAGE), 0);
    TRY(madvise(memory, 12 * PAGE, MADV_WILLNEED));
    TRY(madvise(memory, 12 * PAGE, MADV_NORMAL));
    TRY(madvise(memory, 12 * PAGE, MADV_RANDOM));
    TRY(madvise(memory, 12 * PAGE, MADV_FREE));
    TRY(madvise(memory, 12 * PAGE, MADV_COLD));
    TRY(madvise(memory, 12 * PAGE, MADV_PAGEOUT));
    TRY(madvise(memory, 12 * PAGE, MADV_DONTFORK));
    TRY(madvise(memory, 12 * PAGE, MADV_WIPEONFORK));
    TRY(madvise(memory, 12 * PAGE, MADV_DONTDUMP));
    TRY(madvise(memory, 12 * PAGE, MADV_NOHUGEPAGE));
    TRY(madvise(memory, 12 * PAGE, 12345));
    CHECK_EQ(munmap(memory, 12 * PAGE), 0);
}

static void of_file(void) {
    FILE* file = file_of(4);
    for (int shared = 0; shared < 2; shared++) {
        int flags = shared ? MAP_SHARED : MAP_PRIVATE;
        printf("-- %s\n", shared ? "shared" : "private");
        char* memory = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, flags, fileno(file), 0);
        CHECK(memory != MAP_FAILED);
        TRY(madvise(memory, 4 * PAGE, MADV_POPULATE_READ));
        TRY(madvise(memory, 8 * PAGE, MADV_POPULATE_READ));
        TRY(madvise(memory + 4 * PAGE, PAGE, MADV_POPULATE_READ));
        TRY(madvise(memory + 4 * PAGE, 4 * PAGE, MADV_POPULATE_WRITE));
        TRY(madvise(memory, 4 * PAGE, MADV_POPULATE_WRITE));
        TRY(madvise(memory, 8 * PAGE, MADV_POPULATE_WRITE));
        printf("%c %c\n", memory[0], memory[3 * PAGE]);
        memory[PAGE] = shared ? 'b' : 'X';
        TRY(madvise(memory, 4 * PAGE, MADV_DONTNEED));
        printf("%c\n", memory[PAGE]);
        CHECK_EQ(munmap(memory, 8 * PAGE), 0);
        memory = mmap(NULL, 8 * PAGE, PROT_READ, flags, fileno(file), 0);
        TRY(madvise(memory, 4 * PAGE, MADV_POPULATE_READ));
        TRY(madvise(memory, 4 * PAGE, MADV_POPULATE_WRITE));
        TRY(madvise(memory, 8 * PAGE, MADV_POPULATE_READ));
        TRY(madvise(memory, 8 * PAGE, MADV_POPULATE_WRITE));
        TRY(madvise(memory + 5 * PAGE, PAGE, MADV_POPULATE_READ));
        CHECK_EQ(munmap(memory, 8 * PAGE), 0);
    }
    char* code = (char*)((uintptr_t)of_file & -(uintptr_t)PAGE);
    TRY(madvise(code, PAGE, MADV_POPULATE_READ));
    TRY(madvise(code, PAGE, MADV_POPULATE_WRITE));
    fclose(file);
}

// Over several mappings, of which a later one refuses.
static void several(void) {
    FILE* file = file_of(2);
    char* memory = map(6);
    memset(memory, 1, 6 * PAGE);
    CHECK(mmap(memory + 2 * PAGE, 2 * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fileno(file), 0) !=
          MAP_FAILED);
    TRY(madvise(memory, 6 * PAGE, MADV_FREE));
    TRY(madvise(memory, 6 * PAGE, MADV_WIPEONFORK));
    TRY(madvise(memory, 6 * PAGE, MADV_KEEPONFORK));
    TRY(madvise(memory, 6 * PAGE, MADV_REMOVE));
    TRY(madvise(memory + 2 * PAGE, 2 * PAGE, MADV_REMOVE));
    TRY(madvise(memory, 6 * PAGE, MADV_DONTNEED));
    printf("%d %c %d\n", memory[0], memory[2 * PAGE], memory[4 * PAGE]);
    CHECK_EQ(munmap(memory, 6 * PAGE), 0);

    memory = map(6);
    memset(memory, 1, 6 * PAGE);
    CHECK_EQ(mprotect(memory + 2 * PAGE, 2 * PAGE, PROT_NONE), 0);
    TRY(madvise(memory, 6 * PAGE, MADV_DONTNEED));
    CHECK_EQ(mprotect(memory + 2 * PAGE, 2 * PAGE, PROT_READ), 0);
    printf("%d %d %d\n", memory[0], memory[2 * PAGE], memory[4 * PAGE]);
    CHECK_EQ(munmap(memory, 6 * PAGE), 0);

    // Populated up to the one that refuses.
    memory = map(12);
    CHECK_EQ(mprotect(memory + 4 * PAGE, 4 * PAGE, PROT_NONE), 0);
    TRY(madvise(memory, 12 * PAGE, MADV_POPULATE_WRITE));
    resident("before", memory, 4);
    resident("behind", memory + 8 * PAGE, 4);
    CHECK_EQ(munmap(memory, 12 * PAGE), 0);
    fclose(file);

    // A child has what was not wiped.
    memory = map(6);
    memset(memory, 1, 6 * PAGE);
    CHECK_EQ(munmap(memory + 2 * PAGE, 2 * PAGE), 0);
    TRY(madvise(memory, 6 * PAGE, MADV_WIPEONFORK));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        printf("child: %d %d\n", memory[0], memory[4 * PAGE]);
        fflush(stdout);
        _exit(0);
    }
    CHECK_EQ(waitpid(child, NULL, 0), child);
}

static void of_own_kind(void) {
    int id = memfd_create("sealed", 0);
    CHECK_EQ(ftruncate(id, 4 * PAGE), 0);
    char* memory = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, id, 0);
    memset(memory, 7, 4 * PAGE);
    TRY(madvise(memory, 2 * PAGE, MADV_REMOVE));
    printf("%d %d\n", memory[0], memory[2 * PAGE]);
    TRY(madvise(memory, 4 * PAGE, MADV_POPULATE_WRITE));
    CHECK_EQ(ftruncate(id, 2 * PAGE), 0);
    TRY(madvise(memory, 4 * PAGE, MADV_POPULATE_WRITE));
    TRY(madvise(memory, 4 * PAGE, MADV_POPULATE_READ));
    TRY(madvise(memory, 2 * PAGE, MADV_POPULATE_READ));
    CHECK_EQ(munmap(memory, 4 * PAGE), 0);
    close(id);
    memory = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    TRY(madvise(memory, 4 * PAGE, MADV_POPULATE_WRITE));
    TRY(madvise(memory, 4 * PAGE, MADV_POPULATE_READ));
    CHECK_EQ(mprotect(memory, 4 * PAGE, PROT_READ), 0);
    TRY(madvise(memory, 4 * PAGE, MADV_POPULATE_WRITE));
    TRY(madvise(memory, 4 * PAGE, MADV_REMOVE));
    CHECK_EQ(munmap(memory, 4 * PAGE), 0);
}

int main(void) {
    manual_begin();
    anonymous();
    with_holes();
    of_file();
    several();
    of_own_kind();
    manual_in_child("child: anonymous", anonymous);
    manual_in_child("child: with holes", with_holes);
    manual_in_child("child: of a file", of_file);
    manual_in_child("child: several", several);
    return guest_passed();
}
