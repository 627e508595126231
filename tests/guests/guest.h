// Shared by all guests: checks that name the failing line, and the success word.
//
// A guest exercises one behaviour of Linux, prints only what is the same in every run, and ends
// with "passed". tests/run compares everything it does natively and under gpr.
#ifndef GPR_TESTS_GUESTS_GUEST_H
#define GPR_TESTS_GUESTS_GUEST_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GUEST_SKIP_STATUS 77

#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            int saved_errno = errno;                                                        \
            fprintf(stderr, "%s:%d: CHECK(%s) failed, errno %d (%s)\n", __FILE__, __LINE__, \
                    #condition, saved_errno, strerror(saved_errno));                        \
            _exit(1);                                                                       \
        }                                                                                   \
    } while (0)

#define CHECK_EQ(got, expected)                                                            \
    do {                                                                                   \
        long long got_value = (long long)(got), expected_value = (long long)(expected);    \
        if (got_value != expected_value) {                                                 \
            int saved_errno = errno;                                                       \
            fprintf(stderr, "%s:%d: %s is %lld, expected %lld, errno %d (%s)\n", __FILE__, \
                    __LINE__, #got, got_value, expected_value, saved_errno,                \
                    strerror(saved_errno));                                                \
            _exit(1);                                                                      \
        }                                                                                  \
    } while (0)

// The call must fail with exactly this errno.
#define CHECK_ERRNO(call, expected)  \
    do {                             \
        errno = 0;                   \
        CHECK_EQ((call), -1);        \
        CHECK_EQ(errno, (expected)); \
    } while (0)

// What this machine lacks is a reason to skip, never to pass.
#define SKIP(reason)                     \
    do {                                 \
        printf("skipped: %s\n", reason); \
        fflush(stdout);                  \
        _exit(GUEST_SKIP_STATUS);        \
    } while (0)

static inline int guest_passed(void) {
    printf("passed\n");
    return fflush(stdout) == 0 ? 0 : 1;
}

// xorshift: the same bytes in every run, for data that must arrive unchanged.
static inline uint64_t guest_random(uint64_t* state) {
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

static inline void guest_fill(void* memory, size_t size_bytes, uint64_t seed) {
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    unsigned char* bytes = (unsigned char*)memory;
    for (size_t i = 0; i < size_bytes; i++) bytes[i] = (unsigned char)(guest_random(&state) >> 24);
}

static inline int guest_is_filled(const void* memory, size_t size_bytes, uint64_t seed) {
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    const unsigned char* bytes = (const unsigned char*)memory;
    for (size_t i = 0; i < size_bytes; i++)
        if (bytes[i] != (unsigned char)(guest_random(&state) >> 24)) return 0;
    return 1;
}

// Uses that much CPU time, at least, as the process's clock counts it.
static inline void guest_compute(int ms) {
    struct timespec now;
    CHECK_EQ(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now), 0);
    long long end = now.tv_sec * 1000000000LL + now.tv_nsec + ms * 1000000LL;
    volatile uint64_t x = 1;
    do {
        for (int i = 0; i < 100000; i++) x = x * 6364136223846793005u + 1;
        CHECK_EQ(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now), 0);
    } while (now.tv_sec * 1000000000LL + now.tv_nsec < end);
}

#endif
