// 900 open files and pipes at once, poll on all of them, close in another order.
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>

#include "guest.h"

enum { PIPES = 450 };

int main(void) {
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_cur < 1000) limit.rlim_cur = limit.rlim_max < 1000 ? limit.rlim_max : 1000;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    static int fds[PIPES][2];
    static struct pollfd polled[PIPES];
    for (int i = 0; i < PIPES; i++) {
        CHECK_EQ(pipe(fds[i]), 0);
        CHECK_EQ(fds[i][0], 3 + 2 * i);
        polled[i] = (struct pollfd){fds[i][0], POLLIN, 0};
    }
    for (int i = 0; i < PIPES; i += 3) CHECK_EQ(write(fds[i][1], &i, sizeof i), sizeof i);
    CHECK_EQ(poll(polled, PIPES, 1000), PIPES / 3);
    for (int i = 0; i < PIPES; i++) {
        CHECK_EQ(polled[i].revents, i % 3 ? 0 : POLLIN);
        int value = -1;
        if (i % 3 == 0) CHECK(read(fds[i][0], &value, sizeof value) == sizeof value && value == i);
    }
    for (int i = 0; i < PIPES; i++) CHECK_EQ(close(fds[(i * 7) % PIPES][0]), 0);
    CHECK_EQ(open("/dev/null", O_RDONLY), 3);
    return guest_passed();
}
