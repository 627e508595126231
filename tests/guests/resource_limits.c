// setrlimit takes effect: file size with SIGXFSZ, open files with EMFILE.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "guest.h"

static volatile int too_big;
static void on_xfsz(int number) { too_big++; }

int main(void) {
    signal(SIGXFSZ, on_xfsz);
    struct rlimit limit = {5000, 5000};
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    char data[8000] = {0};
    CHECK_EQ(write(fd, data, sizeof data), 5000);
    CHECK_ERRNO(write(fd, data, 1), EFBIG);
    CHECK_EQ(too_big, 1);
    limit = (struct rlimit){12, 12};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    int opened = 0;
    while (open("data", O_RDONLY) >= 0) opened++;
    CHECK_EQ(errno, EMFILE);
    CHECK_EQ(opened, 12 - fd - 1);
    CHECK_ERRNO(dup2(fd, 12), EBADF);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_EQ(limit.rlim_cur, 12);
    CHECK_EQ(prlimit(0, RLIMIT_NOFILE, NULL, &limit), 0);
    CHECK_EQ(limit.rlim_max, 12);
    return guest_passed();
}
