// flock(2): shared and exclusive, conversion, what fork, dup and another open share, errors.
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>

#include "manual.h"

static void errors(void) {
    int fd = open("lock", O_RDWR | O_CREAT, 0600);
    TRY(flock(-1, LOCK_SH));
    TRY(flock(99, LOCK_SH));
    TRY(flock(fd, 0));
    TRY(flock(fd, LOCK_SH | LOCK_EX));
    TRY(flock(fd, LOCK_NB));
    TRY(flock(fd, 64));
    TRY(flock(fd, LOCK_UN));
    TRY(flock(fd, LOCK_UN | LOCK_NB));
    int path = open("lock", O_PATH);
    TRY(flock(path, LOCK_SH));
    int read_only = open("lock", O_RDONLY);
    TRY(flock(read_only, LOCK_EX | LOCK_NB));
    int dir = open(".", O_RDONLY | O_DIRECTORY);
    TRY(flock(dir, LOCK_EX | LOCK_NB));
    int pipes[2];
    CHECK_EQ(pipe(pipes), 0);
    TRY(flock(pipes[0], LOCK_EX | LOCK_NB));
}

static void who_shares(void) {
    int fd = open("lock", O_RDWR), other = open("lock", O_RDWR), same = dup(fd);
    TRY(flock(fd, LOCK_SH));
    TRY(flock(other, LOCK_SH | LOCK_NB));
    TRY(flock(other, LOCK_EX | LOCK_NB));  // and loses what it had
    TRY(flock(fd, LOCK_EX | LOCK_NB));
    TRY(flock(same, LOCK_EX | LOCK_NB));
    TRY(flock(other, LOCK_SH | LOCK_NB));
    pid_t child = fork();
    if (child == 0) {
        TRY(flock(fd, LOCK_EX | LOCK_NB));
        TRY(flock(other, LOCK_SH | LOCK_NB));
        int third = open("lock", O_RDWR);
        TRY(flock(third, LOCK_SH | LOCK_NB));
        TRY(flock(fd, LOCK_UN));
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    TRY(flock(other, LOCK_SH | LOCK_NB));
    TRY(close(other));
    TRY(flock(fd, LOCK_EX | LOCK_NB));
    TRY(close(fd));
    other = open("lock", O_RDWR);
    TRY(flock(other, LOCK_SH | LOCK_NB));
    TRY(close(same));
    TRY(flock(other, LOCK_SH | LOCK_NB));
    struct flock record = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    TRY(fcntl(other, F_SETLK, &record));  // of another kind: they do not meet
}

static void nothing(int number) { (void)number; }

static void waits(void) {
    int fd = open("lock", O_RDWR), to_child[2];
    CHECK_EQ(pipe(to_child), 0);
    CHECK_EQ(flock(fd, LOCK_EX), 0);
    pid_t child = fork();
    if (child == 0) {
        int own = open("lock", O_RDWR);
        struct sigaction action = {.sa_handler = nothing};
        sigaction(SIGALRM, &action, NULL);
        alarm(1);
        TRY(flock(own, LOCK_EX));  // interrupted
        CHECK_EQ(write(to_child[1], "x", 1), 1);
        TRY(flock(own, LOCK_EX));  // given
        fflush(stdout);
        _exit(0);
    }
    char byte;
    CHECK_EQ(read(to_child[0], &byte, 1), 1);
    usleep(50000);
    CHECK_EQ(flock(fd, LOCK_UN), 0);
    waitpid(child, NULL, 0);
    TRY(flock(fd, LOCK_EX | LOCK_NB));
}

int main(void) {
    manual_begin();
    manual_in_child("errors", errors);
    manual_in_child("who shares", who_shares);
    manual_in_child("waits", waits);
    unlink("lock");
    return guest_passed();
}
