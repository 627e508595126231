// One of the processes that share memory cannot be split, so the others do not have it to
// themselves: family.h
#include "family.h"

// Where gpr puts its own part, unless that is there already.
static void take_our_place(int child) {
    if (child != 0) return;
    mmap((void*)0x550000000000, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
         -1, 0);
}

int main(void) {
    run_family(take_our_place);
    return guest_passed();
}
