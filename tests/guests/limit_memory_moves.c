// RLIMIT_AS and mremap that grows a mapping: as far as the limit allows, and then ENOMEM, whether
// it moves or not; the memory stays as it was.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "guest.h"

enum { MIB = 1 << 20, PIECE = 50 * MIB, MOST = 60 };

static void grow(const char* when, int flags) {
    char* memory = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    memory[0] = 7;
    size_t pieces = 1;
    while (pieces < MOST) {
        char* more = mremap(memory, pieces * PIECE, (pieces + 1) * PIECE, flags);
        if (more == MAP_FAILED) break;
        memory = more;
        pieces++;
        memory[pieces * PIECE - 1] = (char)pieces;
    }
    CHECK_EQ(errno, ENOMEM);
    printf("%s: %zu pieces\n", when, pieces);
    fflush(stdout);
    CHECK_EQ(memory[0], 7);
    for (size_t i = 2; i <= pieces; i++) CHECK_EQ(memory[i * PIECE - 1], i);
    // What it has may move, and what it gives back it may have again.
    char* away = mremap(memory, pieces * PIECE, (pieces - 1) * PIECE, flags);
    CHECK(away == memory);
    CHECK(mremap(memory, (pieces - 1) * PIECE, (pieces + MOST) * PIECE, flags) == MAP_FAILED);
    CHECK_EQ(errno, ENOMEM);
    CHECK_EQ(memory[0], 7);
    CHECK_EQ(munmap(memory, (pieces - 1) * PIECE), 0);
}

int main(void) {
    struct rlimit limit = {(rlim_t)1024 * MIB, (rlim_t)2048 * MIB};
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    grow("grows", MREMAP_MAYMOVE);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        grow("child", MREMAP_MAYMOVE);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    limit.rlim_cur = (rlim_t)2048 * MIB;
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    grow("more", MREMAP_MAYMOVE);
    return guest_passed();
}
