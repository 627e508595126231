// A mapping that moves to a place between two others does not disturb them, nor is it disturbed:
// in the program that filled them, and in a child that inherits them and looks late.
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

enum { PAGE = 4096, PART = 8 * PAGE, ROUNDS = 6 };

static char* map_at(char* at) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0);
    char* memory = mmap(at, PART, PROT_READ | PROT_WRITE, flags, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

// below, hole, above, each PART bytes; and what will fill the hole.
struct parts {
    char *below, *above, *mover;
};

static struct parts make(uint64_t seed) {
    char* area = mmap(NULL, 5 * PART, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(area != MAP_FAILED);
    struct parts p = {map_at(area + PART), map_at(area + 3 * PART), map_at(NULL)};
    guest_fill(p.below, PART, seed);
    guest_fill(p.above, PART, seed + 1);
    guest_fill(p.mover, PART, seed + 2);
    return p;
}

static void move_and_check(struct parts p, uint64_t seed, int flags) {
    char* hole = p.below + PART;
    CHECK(mremap(p.mover, PART, PART, MREMAP_MAYMOVE | MREMAP_FIXED | flags, hole) == hole);
    CHECK(guest_is_filled(p.above, PART, seed + 1));
    CHECK(guest_is_filled(hole, PART, seed + 2));
    CHECK(guest_is_filled(p.below, PART, seed));
    if (flags) CHECK_EQ(p.mover[PAGE], 0);
    guest_fill(p.below, 3 * PART, seed + 3);
    CHECK(guest_is_filled(p.below, 3 * PART, seed + 3));
}

static char* grow(size_t from_size, size_t to_size) {
    char* memory =
        mmap(NULL, from_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t size = from_size; size < to_size; size *= 2) {
        guest_fill(memory, size, size);
        memory = mremap(memory, size, 2 * size, MREMAP_MAYMOVE);
        CHECK(memory != MAP_FAILED && guest_is_filled(memory, size, size));
        CHECK_EQ(memory[2 * size - 1], 0);
    }
    return memory;
}

int main(void) {
    for (uint64_t round = 0; round < ROUNDS; round++) {
        int flags = round % 2 ? MREMAP_DONTUNMAP : 0;
        struct parts mine = make(round * 100), inherited = make(round * 100 + 50);
        pid_t child = fork();
        if (child == 0) {
            usleep(round < 2 ? 80000 : 0);
            move_and_check(inherited, round * 100 + 50, flags);
            CHECK_EQ(munmap(grow(PAGE, 64 * PAGE), 64 * PAGE), 0);
            _exit(0);
        }
        move_and_check(mine, round * 100, flags);
        CHECK_EQ(munmap(grow(PAGE, 256 * PAGE), 256 * PAGE), 0);
        int status = -1;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 0);
    }
    return guest_passed();
}
