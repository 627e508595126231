// Memory that the program makes and shares with itself (memfd_create), many times. With an
// argument: one, of which it says on stdout where it is, and which it maps when it has been told
// to; then it writes there, and reads what somebody else has written, each time that it is told.
#include <fcntl.h>
#include <sys/mman.h>

#include "guest.h"

enum { PAGE = 4096, MANY = 300, KEPT_EVERY = 10, ROUNDS = 20 };

static int make(void) {
    int fd = memfd_create("made", MFD_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_EQ(ftruncate(fd, PAGE), 0);
    return fd;
}

static volatile int* map(int fd) {
    void* memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static void make_many(void) {
    for (int i = 0; i < MANY; i++) {
        int fd = make(), read = 0;
        volatile int* memory = map(fd);
        *memory = i + 1;
        CHECK_EQ(pread(fd, &read, sizeof read, 0), sizeof read);
        CHECK_EQ(read, i + 1);
        CHECK_EQ(close(fd), 0);
        if (i % KEPT_EVERY) CHECK_EQ(munmap((void*)memory, PAGE), 0);
    }
}

static void await_word(void) {
    char line[16];
    CHECK(fgets(line, sizeof line, stdin));
}

static void share_with_visitor(void) {
    int fd = make();
    printf("/proc/%d/fd/%d\n", getpid(), fd);
    fflush(stdout);
    await_word();
    volatile int* memory = map(fd);
    for (int i = 1; i <= ROUNDS; i++) {
        memory[0] = i;
        printf("written %d\n", i);
        fflush(stdout);
        await_word();
        CHECK_EQ(memory[1], i);
    }
}

int main(int argc, char** argv) {
    (void)argv;
    if (argc == 1) {
        make_many();
        return guest_passed();
    }
    share_with_visitor();
    return 0;
}
