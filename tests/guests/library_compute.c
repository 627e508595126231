// The library computes on memory of the program: a counting loop, sums and fills of 32 MiB.
#include "guest.h"
#include "libgprguest.h"

enum { COUNT = 4 << 20 };

int main(void) {
    uint64_t* values = malloc(COUNT * sizeof *values);
    uint64_t expected = 0;
    for (uint64_t i = 0; i < COUNT; i++) expected += values[i] = i * 3;
    CHECK(remote_sum(values, COUNT) == expected);
    CHECK_EQ(remote_count(1000000000), 1000000000);
    remote_fill(values, COUNT * sizeof *values, 0x5a);
    for (uint64_t i = 0; i < COUNT; i += 100) CHECK(values[i] == 0x5a5a5a5a5a5a5a5a);
    values[77] = 1;
    CHECK(remote_sum(values, 100) == 99 * 0x5a5a5a5a5a5a5a5au + 1);
    return guest_passed();
}
