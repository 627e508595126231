// N small calls with the right sum; the argument is N.
#include "guest.h"
#include "libgprguest.h"

int main(int argc, char** argv) {
    long calls = argc > 1 ? atol(argv[1]) : 1000, sum = 0;
    for (long i = 0; i < calls; i++) sum += remote_add((int)i, 1);
    CHECK(sum == calls * (calls - 1) / 2 + calls);
    printf("%ld calls, sum %ld\n", calls, sum);
    return guest_passed();
}
