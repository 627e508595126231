// IFUNC in the executable picks by CPUID; string functions of libc give right results at all sizes.
#include <cpuid.h>

#include "guest.h"

static int with_avx(void) { return 1; }
static int without_avx(void) { return 2; }
static int (*resolve(void))(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx") ? with_avx : without_avx;
}
int picked(void) __attribute__((ifunc("resolve")));

int main(void) {
    unsigned a, b, c, d;
    CHECK(__get_cpuid(1, &a, &b, &c, &d));
    CHECK_EQ(picked(), (c >> 28 & 1) ? 1 : 2);
    char from[3000], to[3000];
    for (size_t size = 0; size < 2500; size += 1 + size / 7) {
        guest_fill(from, size, size);
        for (size_t i = 0; i < size; i++) from[i] |= 1;
        from[size] = 0;
        memset(to, 0x55, sizeof to);
        memcpy(to + size % 17, from, size + 1);
        CHECK_EQ(strlen(to + size % 17), size);
        CHECK_EQ(memcmp(to + size % 17, from, size), 0);
        CHECK_EQ(strcmp(to + size % 17, from), 0);
        CHECK(memchr(to + size % 17, 0, size + 1) == to + size % 17 + size);
        memmove(to + 5, to + size % 17, size + 1);
        CHECK_EQ(strcmp(to + 5, from), 0);
        CHECK(strchr(to + 5, 0) == to + 5 + size);
    }
    return guest_passed();
}
