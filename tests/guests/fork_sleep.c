// A child that does nothing but wait, each in another way: to its end, and not interrupted.
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "guest.h"

static const struct timespec pause_time = {0, 150000000};
enum { ways = 4 };

static void wait_by(int way) {
    uint32_t word = 0;
    switch (way) {
        case 0: CHECK_EQ(nanosleep(&pause_time, NULL), 0); return;
        case 1: CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &pause_time, NULL), 0); return;
        case 2: CHECK_EQ(poll(NULL, 0, 150), 0); return;
        case 3:
            CHECK_ERRNO(syscall(SYS_futex, &word, FUTEX_WAIT, 0, &pause_time, NULL, 0), ETIMEDOUT);
            return;
    }
}

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(void) {
    for (int way = 0; way < ways; way++) {
        pid_t child = fork();
        if (child == 0) {
            long long begin = now_ns();
            wait_by(way);
            CHECK(now_ns() - begin >= pause_time.tv_nsec);
            _exit(0);
        }
        int status;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 0);
    }
    return guest_passed();
}
