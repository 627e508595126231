// Every kind of argument and result across the library's boundary.
#include "guest.h"
#include "libgprguest.h"

__attribute__((target("avx"))) static void check_wide(void) {
    __m256d in = _mm256_set_pd(1, 2, 3, 4);
    double out[4];
    _mm256_storeu_pd(out, remote_wide_vector(&in, 2.5));
    CHECK(out[0] == 10 && out[1] == 7.5 && out[2] == 5 && out[3] == 2.5);
}

int main(void) {
    CHECK_EQ(remote_constructed(), 1);
    CHECK_EQ(remote_resolved(), 11);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(remote_add(i, 1000), i + 1000);
        CHECK(remote_doubles(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11.0f) == 506);
        CHECK(remote_long_double(1.0L, 2.0L) == 1.0L / 3.0L + 2.0L);
        float out[4];
        _mm_storeu_ps(out, remote_vector(_mm_set_ps(1, 2, 3, 4), _mm_set1_ps((float)i)));
        CHECK(out[0] == 4 * (float)i + 4 && out[3] == (float)i + 1);
        if (__builtin_cpu_supports("avx")) check_wide();
        CHECK_EQ(remote_varargs("idLsid", 1, 2.5, 3.5L, "four", 5, 6.0), 22);
        CHECK_EQ(remote_varargs("iiiiiiiiii", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10), 55);
        struct remote_pair pair = remote_return_pair(i, 5);
        CHECK(pair.first == i + 5 && pair.second == i - 5);
        struct remote_big big = remote_return_big(i);
        CHECK(big.values[11] == 11.0 * i && strcmp(big.name, "big") == 0);
        struct remote_mixed mixed = remote_return_mixed((struct remote_mixed){1.5, i});
        CHECK(mixed.real == 3.0 && mixed.whole == i + 1);
    }
    errno = 0;
    CHECK_EQ(remote_errno_of_bad_close(), EBADF);
    CHECK_EQ(errno, EBADF);
    CHECK_EQ(remote_file("data", "written remotely\n"), 17);
    CHECK_EQ(remote_file("data", "twice\n"), 6);
    return guest_passed();
}
