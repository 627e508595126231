// A library that no rule names calls one that is remote, and then makes calls of home for long.
// Arguments: the number of calls; of turns between the two.
#include <fcntl.h>

#include "guest.h"
#include "libgprneutral.h"

int main(int argc, char** argv) {
    long calls = argc > 1 ? atol(argv[1]) : 2000, turns = argc > 2 ? atol(argv[2]) : 200;
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(neutral_writes(fd, calls, 1), calls);
    CHECK_EQ(neutral_turns(fd, turns), turns);
    CHECK_EQ(neutral_writes(fd, 100, 0), 100);
    char byte;
    CHECK_EQ(pread(fd, &byte, 1, 77), 1);
    CHECK_EQ(byte, 77);
    return guest_passed();
}
