// Children end while threads wait. Nobody handles SIGCHLD, so it interrupts no wait, whatever the
// parent does when it comes: not even those that end with EINTR after any handler.
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

enum { WAITERS = 6, CHILDREN = 60, CALLS = 40 };

static int pairs[WAITERS][2], epolls[WAITERS];
static long results[WAITERS];
static int errors[WAITERS];

static void* wait_for_byte(void* which) {
    long i = (long)(intptr_t)which;
    struct epoll_event event;
    char byte;
    long result = i % 2 ? epoll_wait(epolls[i], &event, 1, -1) : recv(pairs[i][0], &byte, 1, 0);
    results[i] = result;
    errors[i] = result < 0 ? errno : 0;
    return NULL;
}

int main(void) {
    pthread_t threads[WAITERS];
    for (intptr_t i = 0; i < WAITERS; i++) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]), 0);
        struct timeval limit = {3600, 0};
        CHECK_EQ(setsockopt(pairs[i][0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
        epolls[i] = epoll_create1(0);
        struct epoll_event event = {.events = EPOLLIN};
        CHECK_EQ(epoll_ctl(epolls[i], EPOLL_CTL_ADD, pairs[i][0], &event), 0);
        CHECK_EQ(pthread_create(&threads[i], NULL, wait_for_byte, (void*)i), 0);
    }
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            usleep((useconds_t)(i * 37 % 700));
            _exit(i);
        }
        for (int j = 0; j < CALLS; j++) syscall(SYS_getppid);
        int status;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(WEXITSTATUS(status), i);
    }
    for (int i = 0; i < WAITERS; i++) CHECK_EQ(write(pairs[i][1], "x", 1), 1);
    for (int i = 0; i < WAITERS; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
        CHECK_EQ(errors[i], 0);
        CHECK_EQ(results[i], 1);
    }
    return guest_passed();
}
