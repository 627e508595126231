// Clocks never step back, also between threads; all clocks answer; sleeps last long enough.
#include <pthread.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>

#include "guest.h"

static int64_t latest;  // guarded by lock
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int64_t now_ns(clockid_t clock) {
    struct timespec time;
    CHECK_EQ(clock_gettime(clock, &time), 0);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void* watch(void* unused) {
    for (int i = 0; i < 20000; i++) {
        pthread_mutex_lock(&lock);
        int64_t now = now_ns(CLOCK_MONOTONIC);
        CHECK(now >= latest);
        latest = now;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(void) {
    clockid_t clocks[] = {CLOCK_REALTIME,          CLOCK_MONOTONIC,     CLOCK_PROCESS_CPUTIME_ID,
                          CLOCK_THREAD_CPUTIME_ID, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE,
                          CLOCK_MONOTONIC_COARSE,  CLOCK_BOOTTIME,      CLOCK_TAI};
    for (size_t i = 0; i < sizeof clocks / sizeof clocks[0]; i++) {
        int64_t before = now_ns(clocks[i]);
        for (volatile int spin = 0; spin < 100000; spin++) {
        }
        CHECK(now_ns(clocks[i]) >= before);
    }
    CHECK_ERRNO(clock_gettime(12345, &(struct timespec){0}), EINVAL);
    struct timeval day;
    CHECK_EQ(gettimeofday(&day, NULL), 0);
    CHECK(llabs(day.tv_sec - time(NULL)) <= 1);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, watch, NULL);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    int64_t before = now_ns(CLOCK_MONOTONIC);
    struct timespec pause_time = {0, 30000000};
    CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &pause_time, NULL), 0);
    CHECK(now_ns(CLOCK_MONOTONIC) - before >= 30000000);
    struct timespec until = {(before + 60000000) / 1000000000, (before + 60000000) % 1000000000};
    CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL), 0);
    CHECK(now_ns(CLOCK_MONOTONIC) >= before + 60000000);
    struct rusage usage;
    int64_t cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    CHECK(cpu > 1000000);
    CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
    int64_t used = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000LL +
                   (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000LL;
    CHECK(used >= cpu - 20000000);
    struct tms all;
    CHECK(times(&all) != (clock_t)-1);
    CHECK(usage.ru_maxrss > 100);
    return guest_passed();
}
