// A library that no rule names calls one that is remote, and then uses for long what is at home; or
// what is at the acceptor, once it is back at home.
// Arguments: the number of calls; of turns between the two; of pages that home has; of pages that
// the remote library has written. Numbers of pages are powers of two.
#include <fcntl.h>
#include <sys/mman.h>

#include "guest.h"
#include "libgprguest.h"
#include "libgprneutral.h"

static uint64_t* new_pages(long count) {
    void* at = mmap(NULL, (size_t)(count + 1) * 4096, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

int main(int argc, char** argv) {
    long calls = argc > 1 ? atol(argv[1]) : 2000, turns = argc > 2 ? atol(argv[2]) : 200;
    long pages_here = argc > 3 ? atol(argv[3]) : 512, pages_there = argc > 4 ? atol(argv[4]) : 512;
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(neutral_writes(fd, 100, 0), 100);
    uint64_t* here = new_pages(pages_here);
    for (long i = 0; i < pages_here; i++) here[i * 512] = (uint64_t)i;
    CHECK_EQ(neutral_walk(here, pages_here, 1), (uint64_t)(pages_here * (pages_here - 1) / 2));
    CHECK_EQ(neutral_writes(fd, calls, 1), calls);
    CHECK_EQ(neutral_turns(fd, turns), turns);
    CHECK_EQ(neutral_writes(fd, 100, 0), 100);
    char byte;
    CHECK_EQ(pread(fd, &byte, 1, 77), 1);
    CHECK_EQ(byte, 77);
    uint64_t* there = new_pages(pages_there);
    remote_fill(there, (uint64_t)pages_there * 4096, 1);
    CHECK_EQ(neutral_writes(fd, 100, 0), 100);
    CHECK_EQ(neutral_walk(there, pages_there, 0), (uint64_t)pages_there * 0x0101010101010101u);
    return guest_passed();
}
