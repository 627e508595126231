// Waits for descriptors of both nodes: a pipe, which is home's, and a FIFO of the acceptor's file
// tree. polls FIFO [epoll]
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <time.h>

#include "../guests/guest.h"

static int fifo, ends[2];
static volatile int alarms;

struct later {
    pthread_t thread;
    int fd;
    long after_ms;
};

static void* write_later(void* of) {
    struct later* later = of;
    struct timespec time = {later->after_ms / 1000, later->after_ms % 1000 * 1000000};
    nanosleep(&time, NULL);
    CHECK_EQ(write(later->fd, "x", 1), 1);
    return NULL;
}

static void begin(struct later* later, int fd, long after_ms) {
    later->fd = fd;
    later->after_ms = after_ms;
    CHECK_EQ(pthread_create(&later->thread, NULL, write_later, later), 0);
}

static void empty(int fd) {
    char byte;
    CHECK_EQ(read(fd, &byte, 1), 1);
}

static void show(const char* what, int result, const struct pollfd* set, int count) {
    printf("%s: %d", what, result);
    for (int i = 0; i < count; i++) printf(" %#x", set[i].revents);
    printf("\n");
}

static void on_alarm(int signal) { alarms++; }

static void polls(void) {
    struct pollfd set[4] = {
        {ends[0], POLLIN, 99}, {fifo, POLLIN, 99}, {-1, POLLIN, 99}, {fifo, POLLOUT, 99}};
    struct timespec none = {0, 0}, long_time = {100, 0};
    struct later later;
    show("nothing", poll(set, 3, 0), set, 3);
    show("time-out", poll(set, 3, 30), set, 3);
    show("writable", poll(set, 4, -1), set, 4);
    CHECK_EQ(write(fifo, "x", 1), 1);
    show("the acceptor's", poll(set, 3, -1), set, 3);
    CHECK_EQ(write(ends[1], "x", 1), 1);
    show("both", ppoll(set, 3, &none, NULL), set, 3);
    empty(fifo);
    show("home's", poll(set, 3, -1), set, 3);
    empty(ends[0]);
    for (int round = 0; round < 20; round++) {
        begin(&later, round % 2 ? fifo : ends[1], round % 7);
        int result = round % 3 ? poll(set, 2, -1) : ppoll(set, 2, &long_time, NULL);
        show("later", result, set, 2);
        pthread_join(later.thread, NULL);
        empty(round % 2 ? fifo : ends[0]);
    }
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval soon = {{0, 0}, {0, 30000}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &soon, NULL);
    CHECK_ERRNO(poll(set, 2, -1), EINTR);
    CHECK_EQ(alarms, 1);
    // Numbers that are not open.
    int closed = dup(fifo);
    CHECK_EQ(close(closed), 0);
    struct pollfd odd[2] = {{closed, POLLIN, 0}, {ends[0], POLLIN, 0}};
    show("closed", poll(odd, 2, -1), odd, 2);
}

// A signal that only the call's own mask lets through, also where nothing of home's is waited for.
static void polls_under_mask(void) {
    struct pollfd set[2] = {{fifo, POLLIN, 0}, {ends[0], POLLIN, 0}};
    struct timespec long_time = {10, 0};
    struct itimerval soon = {{0, 0}, {0, 30000}};
    sigset_t alarm, none, before;
    sigemptyset(&none);
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &alarm, &before), 0);
    for (int count = 1; count <= 2; count++) {
        alarms = 0;
        setitimer(ITIMER_REAL, &soon, NULL);
        CHECK_ERRNO(ppoll(set, count, &long_time, &none), EINTR);
        CHECK_EQ(alarms, 1);
        raise(SIGALRM);
        CHECK_EQ(alarms, 1);
        CHECK_ERRNO(ppoll(set, count, &long_time, &none), EINTR);
        CHECK_EQ(alarms, 2);
        CHECK_EQ(write(fifo, "x", 1), 1);
        show("under a mask", ppoll(set, count, &long_time, &none), set, count);
        empty(fifo);
    }
    CHECK_EQ(sigprocmask(SIG_SETMASK, &before, NULL), 0);
}

static void show_events(const char* what, int epoll, int timeout_ms) {
    struct epoll_event events[4];
    int count = epoll_wait(epoll, events, 4, timeout_ms);
    unsigned seen[2] = {0, 0};
    for (int i = 0; i < count; i++) seen[events[i].data.u32] |= events[i].events;
    printf("%s: %d %#x %#x\n", what, count, seen[0], seen[1]);
}

static void control(int epoll, int operation, int fd, unsigned events) {
    struct epoll_event event = {.events = events, .data.u32 = fd == fifo};
    CHECK_EQ(epoll_ctl(epoll, operation, fd, &event), 0);
}

static void epolls(void) {
    struct later later;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    control(epoll, EPOLL_CTL_ADD, ends[0], EPOLLIN);
    control(epoll, EPOLL_CTL_ADD, fifo, EPOLLIN);
    struct epoll_event event = {0};
    CHECK_ERRNO(epoll_ctl(epoll, EPOLL_CTL_ADD, fifo, &event), EEXIST);
    show_events("epoll nothing", epoll, 0);
    show_events("epoll time-out", epoll, 30);
    CHECK_EQ(write(fifo, "x", 1), 1);
    show_events("epoll acceptor's", epoll, -1);
    CHECK_EQ(write(ends[1], "x", 1), 1);
    show_events("epoll both", epoll, -1);
    empty(fifo);
    show_events("epoll home's", epoll, -1);
    empty(ends[0]);
    for (int round = 0; round < 20; round++) {
        begin(&later, round % 2 ? fifo : ends[1], round % 7);
        show_events("epoll later", epoll, -1);
        pthread_join(later.thread, NULL);
        empty(round % 2 ? fifo : ends[0]);
    }
    control(epoll, EPOLL_CTL_MOD, fifo, EPOLLIN | EPOLLET);
    CHECK_EQ(write(fifo, "x", 1), 1);
    show_events("epoll edge", epoll, -1);
    show_events("epoll no edge", epoll, 30);
    CHECK_EQ(write(fifo, "x", 1), 1);
    show_events("epoll next edge", epoll, -1);
    control(epoll, EPOLL_CTL_MOD, fifo, EPOLLIN | EPOLLONESHOT);
    show_events("epoll once", epoll, -1);
    show_events("epoll not twice", epoll, 0);
    control(epoll, EPOLL_CTL_DEL, fifo, 0);
    show_events("epoll removed", epoll, 0);
    CHECK_ERRNO(epoll_ctl(epoll, EPOLL_CTL_DEL, fifo, &event), ENOENT);
    // What is closed is not watched any more, and a new epoll knows nothing of the old one's.
    int copy = fcntl(fifo, F_DUPFD, 0);
    CHECK(copy >= 0);
    control(epoll, EPOLL_CTL_ADD, fifo, EPOLLIN);
    int number = epoll;
    CHECK_EQ(close(epoll), 0);
    epoll = epoll_create1(0);
    CHECK_EQ(epoll, number);
    control(epoll, EPOLL_CTL_ADD, ends[0], EPOLLIN);
    show_events("epoll new", epoll, 0);
    empty(copy);
    empty(fifo);
}

int main(int argc, char** argv) {
    CHECK(argc > 1);
    fifo = open(argv[1], O_RDWR | O_NONBLOCK);
    CHECK(fifo >= 0);
    CHECK_EQ(pipe(ends), 0);
    polls();
    polls_under_mask();
    if (argc > 2) epolls();
    return guest_passed();
}
