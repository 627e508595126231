// Descriptors of the acceptor's files in children and after exec. inherit FILE [NUMBER CLOSED]
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include "../guests/guest.h"

extern char** environ;

static char next_byte(int fd) {
    char byte;
    CHECK_EQ(read(fd, &byte, 1), 1);
    return byte;
}

static void expect_success(pid_t child) {
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

// The next image: where the reading goes on.
static int second_image(int fd, int closed) {
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 4097);
    CHECK_EQ(next_byte(fd), 'b');
    char byte;
    CHECK_ERRNO(read(closed, &byte, 1), EBADF);
    return 0;
}

int main(int argc, char** argv) {
    if (argc > 3) return second_image(atoi(argv[2]), atoi(argv[3]));
    CHECK(argc > 1);
    int fd = open(argv[1], O_RDONLY), other = open(argv[1], O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && other >= 0);
    // A child reads on where its parent was, and the parent where the child was.
    CHECK_EQ(lseek(fd, 4095, SEEK_SET), 4095);
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQ(next_byte(fd), 'a');
        CHECK_EQ(next_byte(fd), 'b');
        CHECK_EQ(fcntl(other, F_GETFD), FD_CLOEXEC);
        CHECK_EQ(close(other), 0);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            CHECK_EQ(lseek(fd, 0, SEEK_CUR), 4097);
            CHECK_ERRNO(lseek(other, 0, SEEK_CUR), EBADF);
            _exit(0);
        }
        expect_success(grandchild);
        _exit(0);
    }
    // What the parent closes meanwhile is the child's still.
    CHECK_EQ(lseek(other, 0, SEEK_CUR), 0);
    expect_success(child);
    CHECK_EQ(lseek(fd, 0, SEEK_CUR), 4097);
    for (int kind = 0; kind < 3; kind++) {
        char numbers[2][16];
        snprintf(numbers[0], sizeof numbers[0], "%d", fd);
        snprintf(numbers[1], sizeof numbers[1], "%d", other);
        char* words[] = {argv[0], argv[1], numbers[0], numbers[1], NULL};
        CHECK_EQ(lseek(fd, 4097, SEEK_SET), 4097);
        if (kind == 0) {
            child = fork();
            if (child == 0) execv(argv[0], words);
        } else if (kind == 1) {
            child = vfork();
            if (child == 0) {
                execv(argv[0], words);
                _exit(1);
            }
        } else {
            CHECK_EQ(posix_spawn(&child, argv[0], NULL, NULL, words, environ), 0);
        }
        CHECK(child > 0);
        expect_success(child);
        CHECK_EQ(lseek(fd, 0, SEEK_CUR), 4098);
    }
    // A child that ends without a look at them.
    child = fork();
    if (child == 0) _exit(0);
    expect_success(child);
    char numbers[2][16];
    snprintf(numbers[0], sizeof numbers[0], "%d", fd);
    snprintf(numbers[1], sizeof numbers[1], "%d", other);
    CHECK_EQ(lseek(fd, 4097, SEEK_SET), 4097);
    printf("passed\n");
    fflush(stdout);
    execl(argv[0], argv[0], argv[1], numbers[0], numbers[1], NULL);
    return 1;
}
