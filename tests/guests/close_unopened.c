// Closing all numbers up to a limit, as daemons do: of those that are not open each says EBADF, and
// each that somebody has opened meanwhile, in whatever way, is found.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

enum { LIMIT = 2400, FIRST = 100 };

static int null;

// How many were open.
static int close_all(int first, int last) {
    int found = 0;
    for (int fd = first; fd < last; fd++) {
        if (close(fd) == 0)
            found++;
        else
            CHECK_EQ(errno, EBADF);
    }
    return found;
}

static void at(int number) { CHECK_EQ(dup2(null, number), number); }

static void between(void) {
    CHECK_EQ(close_all(FIRST, LIMIT), 0);
    static const int numbers[] = {FIRST, 101, 599, 600, 611, 612, 1123, 2000, LIMIT - 1};
    enum { COUNT = sizeof numbers / sizeof *numbers };
    for (int i = 0; i < COUNT; i++) at(numbers[i]);
    CHECK_EQ(close_all(FIRST, LIMIT), COUNT);
    // One that is opened among those that were just said to be closed.
    CHECK_EQ(close_all(FIRST, 1000), 0);
    at(1005);
    CHECK_EQ(close_all(1000, 1400), 1);
    CHECK_EQ(close_all(FIRST, 1000), 0);
    CHECK_EQ(fcntl(null, F_DUPFD, 1010), 1010);
    CHECK_EQ(close_all(1000, 1400), 1);
    // What else is said of them.
    CHECK_EQ(close_all(FIRST, 400), 0);
    struct stat status;
    char byte;
    CHECK_ERRNO(fstat(401, &status), EBADF);
    CHECK_ERRNO(read(402, &byte, 1), EBADF);
    CHECK_ERRNO(fcntl(403, F_GETFD), EBADF);
    CHECK_ERRNO(dup(404), EBADF);
    CHECK_ERRNO(dup2(405, 406), EBADF);
    CHECK_ERRNO(lseek(407, 0, SEEK_SET), EBADF);
    CHECK_EQ(dup2(null, 407), 407);
    CHECK_EQ(fcntl(407, F_GETFD), 0);
    CHECK_EQ(close(407), 0);
    CHECK_ERRNO(fcntl(407, F_GETFD), EBADF);
}

static void lowest(void) {
    int fd = dup(null);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(close_all(fd, fd + 300), 0);
    CHECK_EQ(open("/dev/null", O_RDONLY), fd);
    CHECK_EQ(close_all(fd, fd + 300), 1);
    int pair[2], two[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr aligned;
    } control = {{0}};
    char byte = 'x';
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    struct cmsghdr* header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(header), &null, sizeof null);
    CHECK_EQ(sendmsg(pair[0], &message, 0), 1);
    CHECK_EQ(close_all(pair[1] + 1, pair[1] + 300), 0);
    message.msg_controllen = sizeof control;
    CHECK_EQ(recvmsg(pair[1], &message, 0), 1);
    CHECK_EQ(close_all(pair[1] + 1, pair[1] + 300), 1);
    CHECK_EQ(close_all(pair[1] + 1, pair[1] + 300), 0);
    CHECK_EQ(pipe(two), 0);
    CHECK_EQ(close_all(pair[1] + 1, pair[1] + 300), 2);
    CHECK_EQ(close(pair[0]) | close(pair[1]), 0);
}

static volatile int stage;

static void await(int wanted) {
    while (__atomic_load_n(&stage, __ATOMIC_SEQ_CST) != wanted) sched_yield();
}

static void tell(int reached) { __atomic_store_n(&stage, reached, __ATOMIC_SEQ_CST); }

static void* opens_meanwhile(void* nothing) {
    for (int i = 0; i < 20; i++) {
        await(2 * i + 1);
        at(1000 + i);
        tell(2 * i + 2);
    }
    return nothing;
}

static void beside_thread(void) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, opens_meanwhile, NULL), 0);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(close_all(970, 1000 + i), 0);
        tell(2 * i + 1);
        await(2 * i + 2);
        CHECK_EQ(close_all(1000 + i, 1030), 1);
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static int waits_and_opens(void* ends) {
    char byte;
    if (read(((int*)ends)[0], &byte, 1) != 1) _exit(1);
    at(2005);
    if (write(((int*)ends)[1], &byte, 1) != 1) _exit(1);
    _exit(0);
}

// A child that has the same table.
static void beside_relative(int age_us) {
    int to[2], from[2];
    CHECK(pipe(to) == 0 && pipe(from) == 0);
    int ends[2] = {to[0], from[1]};
    pid_t child = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
    CHECK(child >= 0);
    if (child == 0) waits_and_opens(ends);
    usleep((useconds_t)age_us);
    CHECK_EQ(close_all(1900, 2000), 0);
    char byte = 0;
    CHECK_EQ(write(to[1], &byte, 1), 1);
    CHECK_EQ(read(from[0], &byte, 1), 1);
    CHECK_EQ(close_all(2000, 2100), 1);
    CHECK_EQ(close_all(2000, 2100), 0);
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(close(to[0]) | close(to[1]) | close(from[0]) | close(from[1]), 0);
}

static void in_child(int age_us) {
    at(2200);
    pid_t child = fork();
    if (child == 0) {
        usleep((useconds_t)age_us);
        CHECK_EQ(close_all(FIRST, LIMIT), 1);
        beside_relative(age_us);
        beside_thread();
        _exit(0);
    }
    CHECK_EQ(close_all(2100, 2300), 1);  // its own
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

static void on_signal(int number) {
    (void)number;
    at(2310);
}

static void beside_signals(void) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(close_all(2250, 2310), 0);
        CHECK_EQ(kill(getpid(), SIGUSR1), 0);
        CHECK_EQ(close_all(2310, 2390), 1);
    }
}

int main(void) {
    struct rlimit limit = {LIMIT + 100, LIMIT + 100};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    null = open("/dev/null", O_RDWR);
    CHECK(null >= 0);
    close_all(null + 1, LIMIT);  // what it was started with
    between();
    lowest();
    beside_thread();
    stage = 0;
    in_child(0);
    stage = 0;
    in_child(60000);
    beside_signals();
    beside_relative(0);
    beside_relative(60000);
    CHECK_EQ(close_all(FIRST, LIMIT), 0);
    return guest_passed();
}
