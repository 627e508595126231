// Processes that share memory go together, and come home together: family.h
#include "family.h"

static void as_it_is(int child) { (void)child; }

int main(void) {
    run_family(as_it_is);
    return guest_passed();
}
