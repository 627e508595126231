// New memory that the call populates, locks or both has what is written to it, in the process and
// in its children, wherever either runs.
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

enum { SIZE = 16 * 4096, ROUNDS = 12 };

static const int flags[] = {0, MAP_POPULATE, MAP_LOCKED, MAP_POPULATE | MAP_LOCKED};

static void round_of(int extra, unsigned char seed) {
    const int type = MAP_PRIVATE | MAP_ANONYMOUS;
    char* memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, type | extra, -1, 0);
    CHECK(memory != MAP_FAILED);
    guest_fill(memory, SIZE, seed);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        usleep(1000);
        _exit(guest_is_filled(memory, SIZE, seed) ? 0 : 1);
    }
    usleep(2000);
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK(guest_is_filled(memory, SIZE, seed));
    CHECK_EQ(munmap(memory, SIZE), 0);
}

int main(void) {
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
            round_of(flags[i], (unsigned char)(round + 1));
    }
    return guest_passed();
}
