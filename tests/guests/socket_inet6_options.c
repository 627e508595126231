// IPv6 on the loopback, socket options, non-blocking connect, SO_REUSEADDR, out-of-band byte.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "guest.h"

int main(void) {
    int listener = socket(AF_INET6, SOCK_STREAM, 0);
    if (listener < 0) SKIP("no IPv6");
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t size = sizeof address;
    int one = 1, value = 0;
    CHECK_EQ(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0);
    if (bind(listener, (struct sockaddr*)&address, size) != 0) SKIP("no IPv6 loopback");
    CHECK_EQ(listen(listener, 5), 0);
    CHECK_EQ(getsockname(listener, (struct sockaddr*)&address, &size), 0);
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0);
    int result = connect(fd, (struct sockaddr*)&address, size);
    CHECK(result == 0 || errno == EINPROGRESS);
    struct pollfd polled = {fd, POLLOUT, 0};
    CHECK_EQ(poll(&polled, 1, 5000), 1);
    size = sizeof value;
    CHECK_EQ(getsockopt(fd, SOL_SOCKET, SO_ERROR, &value, &size), 0);
    CHECK_EQ(value, 0);
    int peer = accept(listener, NULL, NULL);
    CHECK(peer >= 0);
    struct timeval wait = {0, 20000};
    CHECK_EQ(setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait), 0);
    char text[10];
    CHECK_ERRNO(recv(peer, text, sizeof text, 0), EAGAIN);
    CHECK_EQ(send(fd, "!", 1, MSG_OOB), 1);
    polled = (struct pollfd){peer, POLLPRI, 0};
    CHECK_EQ(poll(&polled, 1, 5000), 1);
    CHECK_EQ(recv(peer, text, 1, MSG_OOB), 1);
    CHECK_EQ(text[0], '!');
    struct linger now = {1, 0};
    CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    CHECK_EQ(close(fd), 0);
    CHECK_ERRNO(recv(peer, text, 1, 0), ECONNRESET);
    return guest_passed();
}
