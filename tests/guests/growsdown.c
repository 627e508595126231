// A MAP_GROWSDOWN mapping grows page by page when touched below its start.
#include <sys/mman.h>

#include "guest.h"

int main(void) {
    char* area = mmap(NULL, 2 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_EQ(munmap(area, 2 << 20), 0);
    char* top = area + (2 << 20) - 4096;
    char* stack = mmap(top, 4096, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(stack == top);
    for (int i = 0; i < 60; i++) {
        top[-4096 * i + 8] = (char)i;
        CHECK_EQ(top[-4096 * i + 9], 0);
    }
    for (int i = 0; i < 60; i++) CHECK_EQ(top[-4096 * i + 8], (char)i);
    return guest_passed();
}
