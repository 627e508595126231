// fcntl(2): record locks of processes and of open files, leases, owners, seals of others, pipes.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

#include "manual.h"

static int file;

static int lock(int fd, int command, short type, long start, long length) {
    struct flock wanted = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
    return fcntl(fd, command, &wanted);
}
static pid_t parent;
static void ask(int fd, int command, short type, long start, long length) {
    struct flock found = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
    errno = 0;
    int result = fcntl(fd, command, &found);
    SAY("asked %d for %ld+%ld: %d %s type %d at %ld+%ld by %s", type, start, length, result,
        result < 0 ? strerrorname_np(errno) : "", found.l_type, (long)found.l_start,
        (long)found.l_len,
        found.l_pid == parent ? "parent"
        : found.l_pid == -1   ? "open file"
                              : "nobody");
}

static void errors(void) {
    TRY(lock(-1, F_SETLK, F_WRLCK, 0, 1));
    TRY(lock(file, F_SETLK, 9, 0, 1));
    TRY(lock(file, F_SETLK, F_WRLCK, -1, 1));
    TRY(lock(file, F_SETLK, F_WRLCK, 1, -1));
    TRY(lock(file, F_SETLK, F_WRLCK, 1, -2));
    TRY(lock(file, F_SETLK, F_WRLCK, INT64_MAX, 2));
    TRY(fcntl(file, F_SETLK, NULL));
    TRY(fcntl(file, F_SETLK, manual_bad_pointer()));
    TRY(fcntl(file, F_GETLK, manual_bad_pointer()));
    ask(file, F_GETLK, F_UNLCK, 0, 1);
    int read_only = open("file", O_RDONLY), write_only = open("file", O_WRONLY);
    TRY(lock(read_only, F_SETLK, F_WRLCK, 0, 1));
    TRY(lock(write_only, F_SETLK, F_RDLCK, 0, 1));
    TRY(lock(write_only, F_SETLK, F_WRLCK, 0, 1));
    struct flock with_pid = {.l_type = F_WRLCK, .l_len = 1, .l_pid = 5};
    TRY(fcntl(file, F_OFD_SETLK, &with_pid));
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    TRY(lock(ends[1], F_SETLK, F_WRLCK, 0, 1));
    TRY(fcntl(file, 9999, 0));
    TRY(fcntl(file, F_GETPIPE_SZ));
    TRY(fcntl(file, F_GET_SEALS));
    TRY(fcntl(file, F_ADD_SEALS, 1));
    TRY(fcntl(file, F_DUPFD, -1));
    TRY(fcntl(file, F_DUPFD, 1 << 30));
    TRY(fcntl(file, F_SETSIG, 65));
    TRY(fcntl(file, F_GETSIG));
    TRY(fcntl(file, F_NOTIFY, DN_MODIFY));
    int path = open("file", O_PATH);
    TRY(lock(path, F_SETLK, F_WRLCK, 0, 1));
    TRY(fcntl(path, F_GETFD));
    TRY(fcntl(path, F_GETFL) == O_PATH || fcntl(path, F_GETFL) == (O_PATH | 0100000));
}

static void of_processes(void) {
    parent = getpid();
    TRY(lock(file, F_SETLK, F_WRLCK, 10, 20));
    TRY(lock(file, F_SETLK, F_RDLCK, 15, 5));
    TRY(lock(file, F_SETLK, F_UNLCK, 25, 1));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        usleep(40000);
        ask(file, F_GETLK, F_WRLCK, 0, 0);
        ask(file, F_GETLK, F_RDLCK, 15, 5);
        ask(file, F_GETLK, F_WRLCK, 15, 5);
        ask(file, F_GETLK, F_WRLCK, 25, 1);
        ask(file, F_GETLK, F_WRLCK, 26, 0);
        ask(file, F_GETLK, F_WRLCK, 30, 0);
        TRY(lock(file, F_SETLK, F_WRLCK, 12, 1));
        TRY(lock(file, F_SETLK, F_RDLCK, 16, 1));
        ask(file, F_OFD_GETLK, F_WRLCK, 12, 1);
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    ask(file, F_GETLK, F_WRLCK, 0, 0);
    close(open("file", O_RDONLY));  // and all of this process's locks are gone
    child = fork();
    if (child == 0) {
        ask(file, F_GETLK, F_WRLCK, 0, 0);
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void of_open_files(void) {
    parent = getpid();
    int other = open("file", O_RDWR);
    TRY(lock(file, F_OFD_SETLK, F_WRLCK, 0, 10));
    TRY(lock(other, F_OFD_SETLK, F_WRLCK, 5, 1));
    TRY(lock(other, F_SETLK, F_WRLCK, 5, 1));
    ask(other, F_OFD_GETLK, F_WRLCK, 0, 0);
    ask(other, F_GETLK, F_WRLCK, 0, 0);
    int copy = dup(file);
    close(open("file", O_RDONLY));
    close(copy);
    TRY(lock(other, F_OFD_SETLK, F_WRLCK, 5, 1));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        TRY(lock(file, F_OFD_SETLK, F_UNLCK, 0, 0));
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    TRY(lock(other, F_OFD_SETLK, F_WRLCK, 5, 1));
}

static void deadlock(void) {
    int ready[2];
    CHECK_EQ(pipe(ready), 0);
    CHECK_EQ(lock(file, F_SETLK, F_WRLCK, 0, 1), 0);
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQ(lock(file, F_SETLK, F_WRLCK, 1, 1), 0);
        CHECK_EQ(write(ready[1], "x", 1), 1);
        int result = lock(file, F_SETLKW, F_WRLCK, 0, 1);
        _exit(result == 0 ? 5 : 6);
    }
    char byte;
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    usleep(200000);
    TRY(lock(file, F_SETLKW, F_WRLCK, 1, 1));
    CHECK_EQ(lock(file, F_SETLK, F_UNLCK, 0, 1), 0);
    int status;
    waitpid(child, &status, 0);
    SAY("%#x", status);
}

static volatile sig_atomic_t told;
static void count(int number) { told += number == SIGIO || number == SIGUSR1; }

static void owners_and_leases(void) {
    struct sigaction action = {.sa_handler = count};
    sigaction(SIGIO, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    TRY(fcntl(ends[0], F_GETOWN));
    TRY(fcntl(ends[0], F_SETOWN, getpid()));
    TRY(fcntl(ends[0], F_GETOWN) == getpid());
    TRY(fcntl(ends[0], F_SETOWN, 1 << 29));
    TRY(fcntl(ends[0], F_SETFL, fcntl(ends[0], F_GETFL) | O_ASYNC));
    CHECK_EQ(write(ends[1], "x", 1), 1);
    usleep(20000);
    SAY("told %d", (int)told);
    TRY(fcntl(ends[0], F_SETSIG, SIGUSR1));
    TRY(fcntl(ends[0], F_GETSIG));
    CHECK_EQ(write(ends[1], "x", 1), 1);
    usleep(20000);
    SAY("told %d", (int)told);
    struct f_owner_ex owner = {F_OWNER_TID, (pid_t)syscall(SYS_gettid)};
    TRY(fcntl(ends[0], F_SETOWN_EX, &owner));
    memset(&owner, 0, sizeof owner);
    TRY(fcntl(ends[0], F_GETOWN_EX, &owner));
    SAY("%d %d", owner.type, owner.pid == getpid());
    owner.type = 7;
    TRY(fcntl(ends[0], F_SETOWN_EX, &owner));
    close(file);
    int lease = open("leased", O_RDWR | O_CREAT, 0600);
    TRY(fcntl(lease, F_GETLEASE));
    TRY(fcntl(lease, F_SETLEASE, F_RDLCK));
    TRY(fcntl(lease, F_SETLEASE, F_WRLCK));
    TRY(fcntl(lease, F_GETLEASE));
    TRY(open("leased", O_RDONLY | O_NONBLOCK));
    usleep(20000);
    SAY("told %d", (int)told);
    TRY(fcntl(lease, F_SETLEASE, F_UNLCK));
    TRY(fcntl(lease, F_SETLEASE, 9));
    TRY(fcntl(ends[0], F_SETLEASE, F_RDLCK));
    uint64_t hint = 2;
    TRY(fcntl(lease, F_SET_RW_HINT, &hint));
    hint = 0;
    TRY(fcntl(lease, F_GET_RW_HINT, &hint));
    SAY("%d", (int)hint);
    hint = 99;
    TRY(fcntl(lease, F_SET_RW_HINT, &hint));
    unlink("leased");
}

int main(void) {
    manual_begin();
    file = open("file", O_RDWR | O_CREAT, 0600);
    manual_in_child("errors", errors);
    manual_in_child("of processes", of_processes);
    manual_in_child("of open files", of_open_files);
    manual_in_child("deadlock", deadlock);
    manual_in_child("owners and leases", owners_and_leases);
    unlink("file");
    return guest_passed();
}
