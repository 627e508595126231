// A process that has used up its descriptors forks; the child runs on, long enough to be noticed.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "guest.h"

static void compute_ms(int ms) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

static void with_limit(rlim_t most) {
    struct rlimit limit = {64, most}, seen;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    int last = -1;
    for (int fd; (fd = open("/dev/null", O_RDONLY)) >= 0;) last = fd;
    CHECK_EQ(errno, EMFILE);
    pid_t child = fork();
    if (child == 0) {
        compute_ms(120);
        CHECK_ERRNO(open("/dev/null", O_RDONLY), EMFILE);
        CHECK_EQ(getrlimit(RLIMIT_NOFILE, &seen), 0);
        CHECK_EQ(seen.rlim_cur, 64);
        CHECK_EQ(seen.rlim_max, most);
        char byte;
        CHECK_EQ(read(last, &byte, 1), 0);
        _exit(7);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 7);
}

int main(void) {
    with_limit(128);
    return guest_passed();
}
