// poll, ppoll, select and epoll see the same readiness; level, edge and one-shot.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "guest.h"

int main(void) {
    int fds[2];
    CHECK_EQ(pipe(fds), 0);
    struct pollfd polled[2] = {{fds[0], POLLIN, 0}, {fds[1], POLLOUT, 0}};
    CHECK_EQ(poll(polled, 2, 0), 1);
    CHECK_EQ(polled[1].revents, POLLOUT);
    struct timespec soon = {0, 1000000};
    CHECK_EQ(ppoll(polled, 1, &soon, NULL), 0);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = 0x123456789abcdef};
    CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fds[0], &event), 0);
    CHECK_ERRNO(epoll_ctl(epoll, EPOLL_CTL_ADD, fds[0], &event), EEXIST);
    struct epoll_event got[4];
    CHECK_EQ(epoll_wait(epoll, got, 4, 0), 0);
    CHECK_EQ(write(fds[1], "ab", 2), 2);
    CHECK_EQ(epoll_wait(epoll, got, 4, 1000), 1);
    CHECK(got[0].data.u64 == 0x123456789abcdef && got[0].events == EPOLLIN);
    CHECK_EQ(epoll_wait(epoll, got, 4, 0), 0);
    event.events = EPOLLIN | EPOLLONESHOT;
    CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_MOD, fds[0], &event), 0);
    CHECK_EQ(epoll_wait(epoll, got, 4, 1000), 1);
    CHECK_EQ(epoll_wait(epoll, got, 4, 0), 0);
    CHECK_EQ(poll(polled, 2, -1), 2);
    CHECK_EQ(polled[0].revents, POLLIN);
    fd_set readable;
    FD_ZERO(&readable);
    FD_SET(fds[0], &readable);
    struct timeval wait = {1, 0};
    CHECK_EQ(select(fds[0] + 1, &readable, NULL, NULL, &wait), 1);
    CHECK(FD_ISSET(fds[0], &readable));
    close(fds[1]);
    char byte[2];
    CHECK_EQ(read(fds[0], byte, 2), 2);
    CHECK_EQ(poll(polled, 1, -1), 1);
    CHECK_EQ(polled[0].revents, POLLHUP);
    polled[0].fd = 99;
    CHECK_EQ(poll(polled, 1, 0), 1);
    CHECK_EQ(polled[0].revents, POLLNVAL);
    return guest_passed();
}
