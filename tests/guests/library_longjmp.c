// longjmp out of the library, out of a callback through the library, and into the library.
#include "guest.h"
#include "libgprguest.h"

static jmp_buf home;

static long jump_out(long value, void* argument) {
    if (value == 3) longjmp(home, 30);
    return value;
}

static void jump_into_library(jmp_buf target) { longjmp(target, 55); }

int main(void) {
    for (volatile int i = 1; i <= 100; i++) {
        int value = setjmp(home);
        if (value == 0) {
            remote_longjmp(home, i);
            CHECK(!"not reached");
        }
        CHECK_EQ(value, i);
        value = setjmp(home);
        if (value == 0) {
            remote_callback(jump_out, NULL, 10);
            CHECK(!"not reached");
        }
        CHECK_EQ(value, 30);
        CHECK_EQ(remote_setjmp_around(jump_into_library), 55);
    }
    return guest_passed();
}
