// What a program and its children have used of the CPU, wherever they did: by getrusage, times, the
// clocks, wait4 and waitid, which agree about as well as they do on one machine.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <time.h>

#include "guest.h"

enum { work_ms = 200, slack_ms = 60 };

static int64_t clock_ms(clockid_t clock) {
    struct timespec t;
    CHECK_EQ(clock_gettime(clock, &t), 0);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static int64_t usage_ms(const struct rusage* usage) {
    return (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000LL +
           (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1000;
}

static int64_t rusage_ms(int who) {
    struct rusage usage;
    CHECK_EQ(getrusage(who, &usage), 0);
    return usage_ms(&usage);
}

// By a clock of the thread, which another program on the machine does not slow down.
static void work(int ms) {
    int64_t begin = clock_ms(CLOCK_THREAD_CPUTIME_ID), last = begin;
    while (last < begin + ms) {
        for (volatile int spin = 0; spin < 100000; spin++) {
        }
        int64_t now = clock_ms(CLOCK_THREAD_CPUTIME_ID);
        CHECK(now >= last);
        last = now;
    }
}

int main(void) {
    CHECK(rusage_ms(RUSAGE_CHILDREN) < work_ms / 2);
    work(work_ms);
    CHECK(rusage_ms(RUSAGE_SELF) >= work_ms - slack_ms);
    CHECK(rusage_ms(RUSAGE_THREAD) >= work_ms - slack_ms);
    CHECK(clock_ms(CLOCK_PROCESS_CPUTIME_ID) >= work_ms);
    struct tms t;
    CHECK(times(&t) != (clock_t)-1);
    CHECK((t.tms_utime + t.tms_stime) * 10 >= work_ms - slack_ms);
    clockid_t own;
    CHECK_EQ(clock_getcpuclockid(getpid(), &own), 0);
    CHECK(clock_ms(own) >= work_ms);

    struct rusage usage;
    int status;
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            work(work_ms);
            _exit(0);
        }
        if (i == 0) {
            CHECK_EQ(wait4(child, &status, 0, &usage), child);
            CHECK(usage_ms(&usage) >= work_ms - slack_ms);
        } else if (i == 1) {
            siginfo_t info;
            CHECK_EQ(syscall(SYS_waitid, P_PID, child, &info, WEXITED, &usage), 0);
            CHECK(usage_ms(&usage) >= work_ms - slack_ms);
        } else {
            CHECK_EQ(waitpid(child, &status, 0), child);
        }
        CHECK(rusage_ms(RUSAGE_CHILDREN) >= (i + 1) * work_ms - slack_ms);
    }
    CHECK(times(&t) != (clock_t)-1);
    CHECK((t.tms_cutime + t.tms_cstime) * 10 >= 3 * work_ms - slack_ms);
    // Neither is counted twice.
    CHECK(rusage_ms(RUSAGE_SELF) < 20 * work_ms);
    return guest_passed();
}
