// flock and fcntl locks between a process and its child.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "guest.h"

static int in_child(int (*test)(void)) {
    pid_t child = fork();
    if (child == 0) _exit(test());
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int try_flock(void) {
    int fd = open("data", O_RDWR);
    return flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
}

static int try_record_lock(void) {
    int fd = open("data", O_RDWR);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 5, .l_len = 1};
    if (fcntl(fd, F_SETLK, &lock) == 0) return 0;
    int error = errno;
    if (fcntl(fd, F_GETLK, &lock) != 0 || lock.l_pid != getppid()) return 1;
    return error;
}

int main(void) {
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    CHECK_EQ(flock(fd, LOCK_EX), 0);
    CHECK_EQ(in_child(try_flock), EWOULDBLOCK);
    CHECK_EQ(flock(fd, LOCK_UN), 0);
    CHECK_EQ(in_child(try_flock), 0);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 10};
    CHECK_EQ(fcntl(fd, F_SETLK, &lock), 0);
    CHECK_EQ(in_child(try_record_lock), EAGAIN);
    lock.l_type = F_UNLCK;
    CHECK_EQ(fcntl(fd, F_SETLK, &lock), 0);
    CHECK_EQ(in_child(try_record_lock), 0);
    return guest_passed();
}
