// Low numbers for a file that the acceptor has: what redirections of shells do, and their errors.
// redirected PART FILE; with FILE at hand the same happens natively.
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../guests/guest.h"

static const char *self, *path;

static int opened(void) {
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    return fd;
}

// The file gets this number and no other.
static void redirect(int number) {
    int fd = opened();
    if (fd == number) return;
    CHECK_EQ(dup2(fd, number), number);
    CHECK_EQ(close(fd), 0);
}

static void show(const char* what, int fd, size_t bytes) {
    char text[64] = {0};
    CHECK(bytes < sizeof text);
    ssize_t got = read(fd, text, bytes);
    printf("%s: %zd %s\n", what, got, got < 0 ? strerror(errno) : text);
    fflush(stdout);
}

static int is_listed(int number) {
    DIR* folder = opendir("/proc/self/fd");
    CHECK(folder != NULL);
    int found = 0;
    for (struct dirent* entry; (entry = readdir(folder)) != NULL;) {
        found |= atoi(entry->d_name) == number && number != dirfd(folder);
    }
    closedir(folder);
    return found;
}

static void names(void) {
    redirect(0);
    show("as 0", 0, 5);
    struct stat by_path, by_fd;
    CHECK_EQ(stat(path, &by_path), 0);
    CHECK_EQ(fstat(0, &by_fd), 0);
    CHECK_EQ(by_fd.st_ino, by_path.st_ino);
    CHECK_EQ(by_fd.st_size, by_path.st_size);
    CHECK_EQ(lseek(0, 0, SEEK_CUR), 5);
    int copy = dup(0);
    printf("dup: %d\n", copy);
    show("one offset", copy, 5);
    CHECK_EQ(fcntl(0, F_DUPFD, 20), 20);
    CHECK_EQ(fcntl(0, F_DUPFD_CLOEXEC, 20), 21);
    CHECK_EQ(fcntl(20, F_GETFD), 0);
    CHECK_EQ(fcntl(21, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(dup3(0, 30, O_CLOEXEC), 30);
    CHECK_EQ(fcntl(30, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(fcntl(30, F_SETFD, 0), 0);
    CHECK_EQ(fcntl(30, F_GETFD), 0);
    CHECK_EQ(ioctl(30, FIOCLEX), 0);
    CHECK_EQ(fcntl(30, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(fcntl(30, F_GETFL) & O_ACCMODE, O_RDONLY);
    CHECK(is_listed(30) && is_listed(20) && is_listed(copy));
    CHECK_EQ(lseek(30, 0, SEEK_SET), 0);
    show("by dup3", 21, 5);
    // Home's again, and closed.
    int null = open("/dev/null", O_RDWR);
    CHECK_EQ(dup2(null, 30), 30);
    show("home's", 30, 5);
    CHECK_EQ(write(30, "x", 1), 1);
    CHECK_EQ(close(copy), 0);
    show("closed", copy, 5);
    CHECK_ERRNO(close(copy), EBADF);
    CHECK(!is_listed(copy));
    CHECK_EQ(open("/dev/null", O_RDONLY), copy);
    show("another", copy, 5);
    CHECK_EQ(close_range(20, 21, CLOSE_RANGE_CLOEXEC), 0);
    CHECK_EQ(fcntl(20, F_GETFD), FD_CLOEXEC);
    show("still there", 20, 5);
    CHECK_EQ(close_range(20, INT_MAX, 0), 0);
    show("closed with others", 20, 5);
    show("the first is there", 0, 5);
    CHECK_EQ(dup2(0, 40), 40);
    CHECK_EQ(dup2(40, 0), 0);
    CHECK_EQ(close(40), 0);
    show("over itself", 0, 3);
    // Opened anew it begins anew.
    redirect(50);
    show("a second one", 50, 5);
    int high = opened();
    CHECK_EQ(dup2(high, 50), 50);
    show("over the second", 50, 4);
    show("over the second", high, 4);
}

static void errors(void) {
    int fd = opened();
    CHECK_ERRNO(dup2(fd, -1), EBADF);
    CHECK_ERRNO(dup2(fd, INT_MAX), EBADF);
    CHECK_ERRNO(dup3(fd, fd, 0), EINVAL);
    CHECK_ERRNO(dup3(fd, 7, O_CLOEXEC | 1), EINVAL);
    CHECK_ERRNO(dup3(fd, -1, 0), EBADF);
    CHECK_EQ(dup2(fd, fd), fd);
    CHECK_EQ(dup2(fd, 9), 9);
    CHECK_EQ(dup2(9, 9), 9);
    CHECK_ERRNO(dup3(9, 9, 0), EINVAL);
    CHECK_ERRNO(dup3(9, 8, 1), EINVAL);
    CHECK_ERRNO(dup2(9, -1), EBADF);
    CHECK_ERRNO(fcntl(9, F_DUPFD, -1), EINVAL);
    struct rlimit limit = {12, 12};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK_ERRNO(dup2(9, 12), EBADF);
    CHECK_ERRNO(dup3(9, 13, 0), EBADF);
    CHECK_EQ(dup2(9, 11), 11);
    CHECK_ERRNO(fcntl(9, F_DUPFD, 12), EINVAL);
    CHECK_ERRNO(fcntl(9, F_DUPFD, 11), EMFILE);
    while (dup(9) >= 0) continue;
    CHECK_EQ(errno, EMFILE);
    CHECK_EQ(dup2(9, 10), 10);  // over what is there
    CHECK_EQ(close(5), 0);
    CHECK_EQ(dup(9), 5);
    show("the last one", 5, 5);
    CHECK_EQ(close(9), 0);
    CHECK_ERRNO(dup2(9, 10), EBADF);
    CHECK_ERRNO(dup(9), EBADF);
    show("not hurt", 10, 5);
}

static void as_program(int fd) {
    char number[16];
    snprintf(number, sizeof number, "%d", fd);
    execl(self, self, "read", number, NULL);
    _exit(127);
}

static void wait_for(pid_t child) {
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void children(void) {
    redirect(0);
    CHECK_EQ(dup3(0, 5, O_CLOEXEC), 5);
    pid_t child = fork();
    if (child == 0) {
        show("in a child", 0, 5);
        CHECK_EQ(close(0), 0);
        show("closed there", 0, 5);
        show("by another name", 5, 5);
        _exit(0);
    }
    wait_for(child);
    show("one offset", 0, 5);
    CHECK_EQ(lseek(0, 0, SEEK_SET), 0);
    for (int fd = 0; fd <= 5; fd += 5) {
        child = fork();
        if (child == 0) as_program(fd);
        wait_for(child);
    }
    CHECK_EQ(lseek(0, 0, SEEK_SET), 0);
    child = vfork();
    if (child == 0) as_program(0);
    wait_for(child);
    // What the parent has by a number of the acceptor's, children redirect.
    int fd = opened();
    child = fork();
    if (child == 0) {
        if (dup2(fd, 6) == 6 && close(fd) == 0) as_program(6);
        _exit(126);
    }
    wait_for(child);
    child = vfork();
    if (child == 0) {
        if (dup2(fd, 7) == 7 && fcntl(fd, F_GETFD) == 0 && close(fd) == 0) as_program(7);
        _exit(126);
    }
    wait_for(child);
    show("the parent's", fd, 5);
    CHECK_EQ(lseek(0, 0, SEEK_SET), 0);
    child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "head -c 4; echo; (head -c 5 <&0); echo", NULL);
        _exit(127);
    }
    wait_for(child);
}

static void show_sets(const char* what, int result, fd_set* sets, int last) {
    printf("%s: %d", what, result);
    for (int i = 0; i < 3; i++) {
        for (int fd = 0; fd <= last; fd++) {
            if (FD_ISSET(fd, &sets[i])) printf(" %c%d", "rwx"[i], fd);
        }
    }
    printf("\n");
    fflush(stdout);
}

// A FIFO as 10, both ends of it; a pipe of home as 11 and 12.
static void waits(void) {
    int fifo = open(path, O_RDWR), ends[2];
    CHECK(fifo >= 0);
    CHECK_EQ(dup2(fifo, 10), 10);
    CHECK_EQ(close(fifo), 0);
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(dup2(ends[0], 11), 11);
    CHECK_EQ(dup2(ends[1], 12), 12);
    const char* whats[] = {"nothing", "home's", "both", "the acceptor's"};
    for (int round = 0; round < 4; round++) {
        char byte;
        if (round == 1) CHECK_EQ(write(12, "x", 1), 1);
        if (round == 2) CHECK_EQ(write(10, "x", 1), 1);
        if (round == 3) CHECK_EQ(read(11, &byte, 1), 1);
        struct pollfd set[3] = {{10, POLLIN, 0}, {11, POLLIN, 0}, {10, POLLIN, 0}};
        int ready = poll(set, 3, 20);
        printf("poll, %s: %d %#x %#x\n", whats[round], ready, set[0].revents, set[1].revents);
        fd_set sets[3];
        for (int i = 0; i < 3; i++) FD_ZERO(&sets[i]);
        FD_SET(10, &sets[0]);
        FD_SET(11, &sets[0]);
        struct timeval time = {0, 20000};
        ready = select(13, &sets[0], &sets[1], &sets[2], &time);
        show_sets(whats[round], ready, sets, 12);
        CHECK(ready > 0 ? time.tv_usec <= 20000 : time.tv_sec == 0 && time.tv_usec == 0);
        for (int fd = 10; fd <= 12; fd++) {
            for (int i = 0; i < 3; i++) FD_SET(fd, &sets[i]);
        }
        struct timespec none = {0, 0};
        ready = pselect(13, &sets[0], &sets[1], &sets[2], &none, NULL);
        show_sets("all of them", ready, sets, 12);
        for (int i = 0; i < 3; i++) FD_ZERO(&sets[i]);
        FD_SET(10, &sets[0]);
        ready = select(11, &sets[0], NULL, NULL, &time);
        show_sets("alone", ready, sets, 10);
    }
    // A child wakes us.
    for (int fd = 10; fd <= 12; fd += 2) {
        char byte;
        while (poll(&(struct pollfd){10, POLLIN, 0}, 1, 0) == 1) CHECK_EQ(read(10, &byte, 1), 1);
        while (poll(&(struct pollfd){11, POLLIN, 0}, 1, 0) == 1) CHECK_EQ(read(11, &byte, 1), 1);
        pid_t child = fork();
        if (child == 0) {
            usleep(50000);
            _exit(write(fd, "x", 1) != 1);
        }
        fd_set sets[3];
        for (int i = 0; i < 3; i++) FD_ZERO(&sets[i]);
        FD_SET(10, &sets[0]);
        FD_SET(11, &sets[0]);
        int ready = select(12, &sets[0], NULL, NULL, NULL);
        show_sets("by a child", ready, sets, 11);
        wait_for(child);
    }
    fd_set bad;
    FD_ZERO(&bad);
    FD_SET(10, &bad);
    FD_SET(40, &bad);
    struct timeval soon = {0, 1000};
    CHECK_ERRNO(select(41, &bad, NULL, NULL, &soon), EBADF);
    struct timeval flawed = {0, -1};
    CHECK_ERRNO(select(11, &bad, NULL, NULL, &flawed), EINVAL);
}

// Sent through a socket of home, to ourselves and to a child.
static void rights(void) {
    redirect(10);
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    char byte = 'x', room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    int number = 10;
    memcpy(CMSG_DATA(header), &number, sizeof number);
    CHECK_EQ(sendmsg(ends[0], &message, 0), 1);
    CHECK_EQ(close(10), 0);
    message.msg_controllen = sizeof room;
    CHECK_EQ(recvmsg(ends[1], &message, 0), 1);
    memcpy(&number, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof number);
    CHECK_EQ(dup2(number, 10), 10);
    if (number != 10) CHECK_EQ(close(number), 0);
    show("received", 10, 5);
    // Between nodes, or not: who is refused copies by hand.
    char text[64];
    int null = open("/dev/null", O_WRONLY), pipes[2];
    CHECK_EQ(pipe(pipes), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(lseek(10, 0, SEEK_SET), 0);
        ssize_t moved = i == 0   ? syscall(SYS_sendfile, null, 10, NULL, 5)
                        : i == 1 ? syscall(SYS_splice, 10, NULL, pipes[1], NULL, 5, 0)
                                 : syscall(SYS_copy_file_range, 10, NULL, null, NULL, 5, 0);
        bool refused = moved < 0 && (errno == EINVAL || errno == EXDEV);
        if (refused) moved = write(null, text, (size_t)read(10, text, 5));
        printf("moved: %zd\n", moved);
    }
}

int main(int count, char** arguments) {
    self = arguments[0];
    CHECK(count == 3);
    path = arguments[2];
    if (strcmp(arguments[1], "read") == 0) {
        show("in a program", atoi(arguments[2]), 5);
        return 0;
    }
    if (strcmp(arguments[1], "names") == 0) names();
    if (strcmp(arguments[1], "errors") == 0) errors();
    if (strcmp(arguments[1], "children") == 0) children();
    if (strcmp(arguments[1], "waits") == 0) waits();
    if (strcmp(arguments[1], "rights") == 0) rights();
    return guest_passed();
}
