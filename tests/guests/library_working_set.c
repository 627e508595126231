// The program and a remote library write the same pages in turn, always in the same order, which is
// neither forwards nor backwards, and far apart. Arguments: the number of pages, and of turns.
#include <sys/mman.h>

#include "guest.h"
#include "libgprguest.h"

static void add_to_each(uint64_t* const* where, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) ++*where[i];
}

int main(int argc, char** argv) {
    const uint64_t pages = argc > 1 ? strtoul(argv[1], NULL, 10) : 200;
    const uint64_t turns = argc > 2 ? strtoul(argv[2], NULL, 10) : 20;
    const uint64_t apart = 64 * 4096;
    char* memory =
        mmap(NULL, pages * apart, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    uint64_t** where = calloc(pages, sizeof *where);
    CHECK(where != NULL);
    for (uint64_t i = 0; i < pages; i++) where[i] = (uint64_t*)(memory + i * apart);
    uint64_t random = 1;
    for (uint64_t i = pages; i > 1; i--) {
        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        const uint64_t other = (random >> 33) % i;
        uint64_t* const last = where[i - 1];
        where[i - 1] = where[other];
        where[other] = last;
    }
    for (uint64_t turn = 0; turn < turns; turn++) {
        add_to_each(where, pages);
        remote_add_to_each(where, pages);
    }
    for (uint64_t i = 0; i < pages; i++) CHECK_EQ(*where[i], 2 * turns);
    return guest_passed();
}
