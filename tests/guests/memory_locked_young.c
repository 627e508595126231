// A child that locks memory as the first thing it does, and works with it for long enough to be
// taken to another node meanwhile: what it wrote is what the kernel finds in a large write(2).
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

enum { size = 4 << 20, locked = 8 * 4096 };

static void work(char* memory, int how) {
    if (how == 0) CHECK_EQ(mlock(memory, locked), 0);
    if (how == 1) CHECK_EQ(mlockall(MCL_CURRENT | MCL_FUTURE), 0);
    if (how == 2) {
        memory = mmap(NULL, locked, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0);
        CHECK(memory != MAP_FAILED);
        memset(memory, 'a', locked);
    }
    size_t bytes = how == 2 ? locked : size;
    guest_compute(150);
    memset(memory, 'b', bytes);
    int file = memfd_create("copy", 0);
    CHECK(file >= 0);
    CHECK_EQ(write(file, memory, bytes), (ssize_t)bytes);
    char* copy = malloc(bytes);
    CHECK(copy);
    CHECK_EQ(pread(file, copy, bytes, 0), (ssize_t)bytes);
    for (size_t i = 0; i < bytes; i++) CHECK_EQ(copy[i], 'b');
    memset(memory, 'c', bytes);
    CHECK_EQ(pwrite(file, memory, bytes, 0), (ssize_t)bytes);
    CHECK_EQ(pread(file, copy, bytes, 0), (ssize_t)bytes);
    for (size_t i = 0; i < bytes; i++) CHECK_EQ(copy[i], 'c');
}

int main(void) {
    char* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    memset(memory, 'a', size);
    for (int how = 0; how < 3; how++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            work(memory, how);
            _exit(0);
        }
        int status;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 0);
    }
    return guest_passed();
}
