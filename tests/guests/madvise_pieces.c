// Advice and protection for parts of a mapping, which the kernel then keeps as several: content
// that comes for all of it at once, forks, what is dropped of mixed kinds of memory, gaps.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

enum { PAGE = 4096, MANY = 512, FEW = 8, DONTNEED_LOCKED = 24 };

static sigjmp_buf faulted;

static void on_fault(int number) { siglongjmp(faulted, number); }

static int can_write(char* at) {
    if (sigsetjmp(faulted, 1) != 0) return 0;
    *(volatile char*)at = 9;
    return 1;
}

static char* map(size_t pages, int kind) {
    char* memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static char mark(int page) { return (char)('a' + page % 26); }

static int make_file(int pages) {
    int fd = open("data", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK_EQ(ftruncate(fd, (off_t)pages * PAGE), 0);
    for (int i = 0; i < pages; i++) {
        char c = mark(i);
        CHECK_EQ(pwrite(fd, &c, 1, (off_t)i * PAGE), 1);
    }
    return fd;
}

static void read_over_borders(int advice) {
    int fd = make_file(MANY);
    char* memory = map(MANY, MAP_PRIVATE);
    for (int round = 0; round < 2; round++) {
        CHECK_EQ(pread(fd, memory, MANY * PAGE, 0), MANY * PAGE);
        for (int i = 1; i < MANY && round == 0; i += 7) {
            CHECK_EQ(madvise(memory + i * PAGE, PAGE, advice), 0);
        }
        for (int i = 0; i < MANY; i++) CHECK_EQ(memory[i * PAGE], mark(i));
    }
    CHECK_EQ(munmap(memory, MANY * PAGE), 0);
    volatile char* text = mmap(NULL, MANY * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK_EQ(madvise((char*)text + 2 * PAGE, 4 * PAGE, advice), 0);
    for (int i = 0; i < FEW; i++) CHECK_EQ(text[i * PAGE], mark(i));
    CHECK_EQ(munmap((char*)text, MANY * PAGE), 0);
    CHECK_EQ(close(fd), 0);
}

static void drop_beside_file(void) {
    int fd = make_file(FEW);
    char *memory = map(2 * FEW, MAP_PRIVATE), *text = memory + FEW * PAGE;
    CHECK(mmap(text, FEW * PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == text);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < FEW; i++) memory[i * PAGE] = text[i * PAGE];
        for (int i = 0; i < FEW; i++) CHECK_EQ(memory[i * PAGE], mark(i));
        CHECK_EQ(madvise(memory, 2 * FEW * PAGE, MADV_DONTNEED), 0);
        for (int i = 0; i < FEW; i++) CHECK_EQ(memory[i * PAGE], 0);
        for (int i = 0; i < FEW; i++) CHECK_EQ(text[i * PAGE], mark(i));
    }
    CHECK_EQ(munmap(memory, 2 * FEW * PAGE), 0);
    CHECK_EQ(close(fd), 0);
}

// What mremap leaves of a file's mapping is the file's, also after MADV_DONTNEED.
static void leave_file(int prot) {
    int fd = make_file(FEW), flags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
    char *memory = map(FEW, MAP_PRIVATE), *away = map(1, MAP_PRIVATE);
    for (int round = 0; round < 20; round++) {
        volatile char* text = mmap(memory, FEW * PAGE, prot, MAP_PRIVATE | MAP_FIXED, fd, 0);
        for (int i = 0; i < FEW; i++) CHECK_EQ(text[i * PAGE], mark(i));
        if (prot & PROT_WRITE) text[3 * PAGE] = 'x';
        CHECK(mremap(memory + 3 * PAGE, PAGE, PAGE, flags, away) == away);
        if (round % 2) CHECK_EQ(madvise(memory + 3 * PAGE, PAGE, MADV_DONTNEED), 0);
        CHECK_EQ(text[3 * PAGE], mark(3));
        CHECK_EQ(*away, prot & PROT_WRITE ? 'x' : mark(3));
    }
    CHECK_EQ(munmap(memory, FEW * PAGE), 0);
    CHECK_EQ(close(fd), 0);
}

static void write_after_reading(void) {
    int fd = make_file(FEW);
    for (int round = 0; round < 10; round++) {
        volatile char* text = mmap(NULL, FEW * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
        for (int i = 0; i < 2 * FEW; i++) {
            CHECK_EQ(text[i % FEW * PAGE], mark(i % FEW));
            CHECK(getppid() > 0);
        }
        CHECK_EQ(mprotect((char*)text, FEW * PAGE, PROT_READ | PROT_WRITE), 0);
        for (int i = 0; i < 4 * FEW; i++) {
            text[i % FEW * PAGE + i] = mark(i);
            CHECK(getppid() > 0);
            for (int j = 0; j <= i; j++) CHECK_EQ(text[j % FEW * PAGE + j], mark(j));
        }
        CHECK_EQ(munmap((char*)text, FEW * PAGE), 0);
    }
    CHECK_EQ(close(fd), 0);
}

static void wipe_in_child(void) {
    for (int round = 0; round < 6; round++) {
        char* memory = map(4, MAP_PRIVATE);
        for (int i = 0; i < 4; i++) memory[i * PAGE] = (char)(i + 1);
        CHECK_EQ(madvise(memory + PAGE, PAGE, MADV_WIPEONFORK), 0);
        pid_t child = fork();
        if (child == 0) {
            CHECK_EQ(memory[0], 1);
            CHECK_EQ(memory[PAGE], 0);
            CHECK_EQ(memory[2 * PAGE], 3);
            CHECK_EQ(memory[3 * PAGE], 4);
            _exit(guest_passed());
        }
        int status = -1;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 0);
    }
}

static void drop_mixed(void) {
    char* memory = map(6, MAP_PRIVATE);
    CHECK(mmap(memory + 2 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
    for (int i = 0; i < 6; i++) memory[i * PAGE] = (char)(i + 1);
    CHECK_EQ(madvise(memory, 6 * PAGE, MADV_DONTNEED), 0);
    for (int i = 0; i < 6; i++) CHECK_EQ(memory[i * PAGE], i == 2 || i == 3 ? i + 1 : 0);
    memory[PAGE] = 5;
    CHECK_EQ(munmap(memory + 3 * PAGE, PAGE), 0);
    CHECK_ERRNO(madvise(memory, 6 * PAGE, MADV_DONTNEED), ENOMEM);
    CHECK_EQ(memory[PAGE], 0);
}

static void drop_copies_of_file(void) {
    int fd = make_file(FEW);
    char* memory = mmap(NULL, FEW * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    for (int i = 0; i < FEW; i++) memory[i * PAGE] = 1;
    if (madvise(memory, FEW * PAGE, DONTNEED_LOCKED) == 0) {  // Linux 5.18
        for (int i = 0; i < FEW; i++) CHECK_EQ(memory[i * PAGE], mark(i));
    }
    CHECK_EQ(close(fd), 0);
}

static void protect_over_gap(void) {
    char* memory = map(FEW, MAP_PRIVATE);
    for (int i = 0; i < FEW; i++) memory[i * PAGE] = 1;
    CHECK_EQ(munmap(memory + 4 * PAGE, PAGE), 0);
    CHECK_ERRNO(mprotect(memory, FEW * PAGE, PROT_READ), ENOMEM);
    usleep(1000);
    CHECK_EQ(can_write(memory), 0);
    CHECK_EQ(can_write(memory + 3 * PAGE), 0);
    CHECK_EQ(can_write(memory + 5 * PAGE), 1);
}

int main(void) {
    signal(SIGSEGV, on_fault);
    read_over_borders(MADV_RANDOM);
    read_over_borders(MADV_DONTDUMP);
    drop_beside_file();
    leave_file(PROT_READ);
    leave_file(PROT_READ | PROT_WRITE);
    write_after_reading();
    wipe_in_child();
    drop_mixed();
    drop_copies_of_file();
    protect_over_gap();
    return guest_passed();
}
