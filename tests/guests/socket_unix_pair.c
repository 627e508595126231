// socketpair: streams, datagrams, sequenced packets, shutdown, credentials, MSG_PEEK.
#include <sys/socket.h>
#include <sys/un.h>

#include "guest.h"

int main(void) {
    int pair[2];
    char text[100];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    CHECK_EQ(send(pair[0], "hello", 5, 0), 5);
    CHECK_EQ(recv(pair[1], text, 100, MSG_PEEK), 5);
    CHECK_EQ(recv(pair[1], text, 2, 0), 2);
    CHECK_EQ(recv(pair[1], text, 100, 0), 3);
    CHECK_EQ(shutdown(pair[0], SHUT_WR), 0);
    CHECK_EQ(recv(pair[1], text, 100, 0), 0);
    CHECK_ERRNO(send(pair[0], "x", 1, MSG_NOSIGNAL), EPIPE);
    struct ucred peer;
    socklen_t size = sizeof peer;
    CHECK_EQ(getsockopt(pair[1], SOL_SOCKET, SO_PEERCRED, &peer, &size), 0);
    CHECK_EQ(peer.pid, getpid());
    CHECK_EQ(peer.uid, getuid());
    CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    CHECK_EQ(write(pair[0], "first", 5), 5);
    CHECK_EQ(write(pair[0], "second", 6), 6);
    CHECK_EQ(read(pair[1], text, 3), 3);
    CHECK_EQ(read(pair[1], text, 100), 6);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair), 0);
    CHECK_ERRNO(recv(pair[1], text, 100, 0), EAGAIN);
    CHECK_EQ(send(pair[0], "", 0, 0), 0);
    CHECK_EQ(recv(pair[1], text, 100, 0), 0);
    return guest_passed();
}
