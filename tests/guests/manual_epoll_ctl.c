// epoll_ctl(2), epoll_wait(2), epoll_create(2): operations, flags, nesting, errors.
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "manual.h"

static int set;

static void wait_now(const char* what, int most) {
    struct epoll_event got[8];
    memset(got, 0, sizeof got);
    int count = epoll_wait(set, got, most, 0);
    printf("%s: %d", what, count);
    for (int i = 0; i < count; i++) printf(" [%#x %d]", got[i].events, (int)got[i].data.u32);
    printf("\n");
}
static int change(int operation, int fd, uint32_t events, uint32_t data) {
    struct epoll_event event = {.events = events, .data.u32 = data};
    return epoll_ctl(set, operation, fd, &event);
}

static void errors(void) {
    TRY(epoll_create(0));
    TRY(epoll_create(-1));
    TRY_OK(epoll_create(1));
    TRY(epoll_create1(1));
    set = epoll_create1(EPOLL_CLOEXEC);
    TRY(fcntl(set, F_GETFD));
    int pipes[2];
    CHECK_EQ(pipe(pipes), 0);
    struct epoll_event event = {.events = EPOLLIN};
    TRY(epoll_ctl(-1, EPOLL_CTL_ADD, pipes[0], &event));
    TRY(epoll_ctl(set, EPOLL_CTL_ADD, 99, &event));
    TRY(epoll_ctl(pipes[0], EPOLL_CTL_ADD, pipes[1], &event));
    TRY(epoll_ctl(set, EPOLL_CTL_ADD, set, &event));
    TRY(epoll_ctl(set, 7, pipes[0], &event));
    TRY(epoll_ctl(set, EPOLL_CTL_ADD, pipes[0], NULL));
    TRY(epoll_ctl(set, EPOLL_CTL_ADD, pipes[0], manual_bad_pointer()));
    TRY(epoll_ctl(set, EPOLL_CTL_MOD, pipes[0], &event));
    TRY(epoll_ctl(set, EPOLL_CTL_DEL, pipes[0], &event));
    TRY(epoll_ctl(set, EPOLL_CTL_ADD, pipes[0], &event));
    TRY(epoll_ctl(set, EPOLL_CTL_ADD, pipes[0], &event));
    TRY(change(EPOLL_CTL_MOD, pipes[0], EPOLLIN | EPOLLEXCLUSIVE, 0));
    TRY(change(EPOLL_CTL_ADD, pipes[1], EPOLLOUT | EPOLLEXCLUSIVE | EPOLLONESHOT, 0));
    TRY(change(EPOLL_CTL_ADD, pipes[1], EPOLLOUT | EPOLLEXCLUSIVE, 0));
    TRY(change(EPOLL_CTL_MOD, pipes[1], EPOLLOUT, 0));
    TRY(epoll_ctl(set, EPOLL_CTL_DEL, pipes[0], NULL));
    int file = open("file", O_RDWR | O_CREAT, 0600), dir = open(".", O_RDONLY);
    TRY(change(EPOLL_CTL_ADD, file, EPOLLIN, 0));
    TRY(change(EPOLL_CTL_ADD, dir, EPOLLIN, 0));
    struct epoll_event got[2];
    TRY(epoll_wait(pipes[0], got, 2, 0));
    TRY(epoll_wait(set, got, 0, 0));
    TRY(syscall(SYS_epoll_wait, set, got, -1, 0));
    TRY(epoll_wait(set, manual_bad_pointer(), 2, 0));
    TRY(epoll_wait(99, got, 2, 0));
    struct timespec wrong = {0, -1};
    TRY(syscall(SYS_epoll_pwait2, set, got, 2, &wrong, NULL, 8));
    TRY(syscall(SYS_epoll_pwait2, set, got, 2, manual_bad_pointer(), NULL, 8));
    TRY(syscall(SYS_epoll_pwait, set, got, 2, 0, got, 4));
    unlink("file");
}

static void flags(void) {
    set = epoll_create1(0);
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    TRY(change(EPOLL_CTL_ADD, ends[0], EPOLLIN | EPOLLRDHUP, 1));
    wait_now("nothing", 8);
    CHECK_EQ(write(ends[1], "abc", 3), 3);
    wait_now("level", 8);
    wait_now("level again", 8);
    TRY(change(EPOLL_CTL_MOD, ends[0], EPOLLIN | EPOLLET, 2));
    wait_now("edge", 8);
    wait_now("edge again", 8);
    CHECK_EQ(write(ends[1], "d", 1), 1);
    wait_now("new edge", 8);
    TRY(change(EPOLL_CTL_MOD, ends[0], EPOLLIN | EPOLLONESHOT, 3));
    wait_now("once", 8);
    wait_now("once again", 8);
    TRY(change(EPOLL_CTL_MOD, ends[0], EPOLLIN | EPOLLOUT | EPOLLONESHOT, 4));
    wait_now("armed anew", 8);
    TRY(change(EPOLL_CTL_MOD, ends[0], 0, 5));
    wait_now("no events asked", 8);
    TRY(change(EPOLL_CTL_MOD, ends[0], EPOLLIN | EPOLLWAKEUP, 5));
    TRY(change(EPOLL_CTL_MOD, ends[0], EPOLLPRI, 5));
    wait_now("nothing urgent", 8);
    TRY(send(ends[1], "u", 1, MSG_OOB));
    wait_now("urgent", 8);
    TRY(recv(ends[0], &(char){0}, 1, MSG_OOB));
    wait_now("not any more", 8);
    int pipes[2];
    CHECK_EQ(pipe(pipes), 0);
    TRY(change(EPOLL_CTL_ADD, pipes[1], 0, 9));
    close(pipes[0]);
    wait_now("nobody reads", 8);
    close(pipes[1]);
    CHECK_EQ(pipe(pipes), 0);
    TRY(change(EPOLL_CTL_ADD, pipes[0], EPOLLERR | EPOLLHUP, 10));
    close(pipes[1]);
    wait_now("nobody writes", 8);
    close(pipes[0]);
    TRY(change(EPOLL_CTL_MOD, ends[0], 0, 5));
    close(ends[1]);
    wait_now("hung up unasked", 8);
    TRY(change(EPOLL_CTL_MOD, ends[0], EPOLLIN | EPOLLRDHUP, 6));
    wait_now("hung up", 8);
    int copy = dup(ends[0]);
    close(ends[0]);
    wait_now("closed, a copy is left", 8);
    close(copy);
    wait_now("all closed", 8);
}

static void many_and_nested(void) {
    set = epoll_create1(0);
    int inner = epoll_create1(0), counter = eventfd(1, 0);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 11};
    TRY(change(EPOLL_CTL_ADD, inner, EPOLLIN, 10));
    wait_now("empty inner", 8);
    TRY(epoll_ctl(inner, EPOLL_CTL_ADD, counter, &event));
    wait_now("inner ready", 8);
    TRY(epoll_ctl(inner, EPOLL_CTL_ADD, set, &event));  // a circle
    int counters[6];
    for (int i = 0; i < 6; i++) {
        counters[i] = eventfd(1, 0);
        CHECK_EQ(change(EPOLL_CTL_ADD, counters[i], EPOLLIN, 20 + (uint32_t)i), 0);
    }
    int seen[32] = {0};
    for (int i = 0; i < 7; i++) {  // each in its turn
        struct epoll_event got;
        CHECK_EQ(epoll_wait(set, &got, 1, 0), 1);
        seen[got.data.u32]++;
    }
    for (int i = 0; i < 6; i++) printf("%d ", seen[20 + i]);
    SAY("%d", seen[10]);
    int chain = set;
    for (int i = 0; i < 7; i++) {
        int outer = epoll_create1(0);
        printf("depth %d: ", i);
        TRY(epoll_ctl(outer, EPOLL_CTL_ADD, chain, &event));
        chain = outer;
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        usleep(40000);
        TRY(change(EPOLL_CTL_DEL, counters[0], 0, 0));
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    TRY(change(EPOLL_CTL_DEL, counters[0], 0, 0));
}

static void nothing(int number) { (void)number; }
static void signals(void) {
    set = epoll_create1(0);
    struct sigaction action = {.sa_handler = nothing, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    struct epoll_event got;
    alarm(1);
    TRY(epoll_wait(set, &got, 1, -1));
    sigset_t blocked, empty;
    sigemptyset(&empty);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    raise(SIGUSR1);
    TRY(epoll_pwait(set, &got, 1, 20, NULL));
    TRY(epoll_pwait(set, &got, 1, -1, &empty));
    struct timespec little = {0, 1000};
    TRY(syscall(SYS_epoll_pwait2, set, &got, 1, &little, NULL, 8));
}

int main(void) {
    manual_begin();
    manual_in_child("errors", errors);
    manual_in_child("flags", flags);
    manual_in_child("many and nested", many_and_nested);
    manual_in_child("signals", signals);
    return guest_passed();
}
