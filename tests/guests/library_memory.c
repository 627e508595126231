// Much memory: some is touched by the library once, some is written by library and program in turn.
// Arguments: MiB touched once, MiB written in turn, rounds.
#include <sys/mman.h>

#include "guest.h"
#include "libgprguest.h"

static unsigned char* map(size_t size) {
    void* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static size_t count_wrong(const unsigned char* memory, size_t size, int byte) {
    size_t wrong = 0;
    for (size_t i = 0; i < size; i += 4096) wrong += memory[i] != byte || memory[i + 4095] != byte;
    return wrong;
}

int main(int argc, char** argv) {
    size_t once = (size_t)(argc > 1 ? atoi(argv[1]) : 64) << 20;
    size_t shared = (size_t)(argc > 2 ? atoi(argv[2]) : 8) << 20;
    int rounds = argc > 3 ? atoi(argv[3]) : 3;
    unsigned char* touched = map(once);
    remote_fill(touched, once, 0x5a);
    CHECK_EQ(touched[0], 0x5a);
    CHECK_EQ(touched[once - 1], 0x5a);
    unsigned char* both = map(shared);
    for (int round = 1; round <= rounds; round++) {
        remote_fill(both, shared, round);
        CHECK_EQ(count_wrong(both, shared, round), 0);
        memset(both, 0x80 | round, shared);
        CHECK_EQ(remote_sum((const uint64_t*)both, 512),
                 512 * (0x0101010101010101u * (0x80u | (unsigned)round)));
    }
    return guest_passed();
}
