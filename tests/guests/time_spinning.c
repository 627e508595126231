// Threads that do little else than read clocks, so that they nearly always stand inside of the vdso
// when something happens to them. Time never decreases, and is what the kernel says.
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"

enum { threads = 2, ms = 700 };

static const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_MONOTONIC_COARSE,
                                   CLOCK_BOOTTIME};

static int64_t ns_of(struct timespec t) { return t.tv_sec * 1000000000LL + t.tv_nsec; }

static int64_t read_clock(clockid_t clock) {
    struct timespec t = {-1, -1};
    CHECK_EQ(clock_gettime(clock, &t), 0);
    CHECK(t.tv_nsec >= 0 && t.tv_nsec < 1000000000);
    return ns_of(t);
}

static int64_t ask_kernel(clockid_t clock) {
    struct timespec t;
    CHECK_EQ(syscall(SYS_clock_gettime, clock, &t), 0);
    return ns_of(t);
}

// Reads the clock again and again for a while. CLOCK_REALTIME may be set meanwhile.
static void spin(clockid_t clock, int64_t until) {
    const int64_t before = ask_kernel(clock), slack = 1000000000;
    int64_t last = 0, least = before - slack, most = before;
    do {
        for (int i = 0; i < 20000; i++) {
            const int64_t now = read_clock(clock);
            if (clock != CLOCK_REALTIME) CHECK(now >= last);
            last = now;
            if (now < least) least = now;
            if (now > most) most = now;
        }
    } while (read_clock(CLOCK_MONOTONIC) < until);
    CHECK_EQ(least, before - slack);
    CHECK(most < ask_kernel(clock) + slack);
}

static void* run(void* unused) {
    const int64_t began = read_clock(CLOCK_MONOTONIC);
    const int count = sizeof clocks / sizeof *clocks;
    for (int i = 0; i < count; i++) spin(clocks[i], began + (i + 1) * ms * 1000000LL / count);
    return unused;
}

int main(void) {
    pthread_t others[threads - 1];
    for (int i = 0; i < threads - 1; i++) CHECK_EQ(pthread_create(&others[i], NULL, run, NULL), 0);
    run(NULL);
    for (int i = 0; i < threads - 1; i++) CHECK_EQ(pthread_join(others[i], NULL), 0);
    puts("passed");
    return 0;
}
