// Large initialised data, of which a process has written some pages before it goes elsewhere: the
// rest still has its initial values. Where the kernel always uses huge pages, too (scenario
// resting).
#include "guest.h"

enum { WORDS = 2 << 20, WRITTEN_EVERY = WORDS / 8, WRITTEN_AT = 5000 };
enum { INITIAL = 0x12345678, WRITTEN = 7 };

// A huge page begins where it does.
__asm__(".data\n.globl table\n.balign 2097152\ntable: .fill 2097152, 4, 0x12345678\n.text");
extern volatile uint32_t table[WORDS];

int main(void) {
    for (int i = WRITTEN_AT; i < WORDS; i += WRITTEN_EVERY) table[i] = WRITTEN;
    guest_compute(400);
    long wrong = 0;
    for (int i = 0; i < WORDS; i++)
        wrong += table[i] != (i % WRITTEN_EVERY == WRITTEN_AT ? WRITTEN : INITIAL);
    CHECK_EQ(wrong, 0);
    return guest_passed();
}
