// getsockname(2), getpeername, listen(2), socketpair(2), with each family that is here.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "manual.h"

static void names(void) {
    struct sockaddr_in any = {.sin_family = AF_INET}, name;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t size = sizeof name;
    memset(&name, 0x55, sizeof name);
    TRY(getsockname(fd, (struct sockaddr*)&name, &size));
    SAY("%u %d %#x %d", size, name.sin_family, name.sin_addr.s_addr, name.sin_port);
    TRY(bind(fd, (struct sockaddr*)&any, sizeof any));
    TRY(bind(fd, (struct sockaddr*)&any, sizeof any));
    memset(&name, 0x55, sizeof name);
    size = 4;
    TRY(getsockname(fd, (struct sockaddr*)&name, &size));
    SAY("%u %d %#x", size, name.sin_family, name.sin_addr.s_addr);
    size = 1000;
    TRY(getsockname(fd, (struct sockaddr*)&name, &size));
    SAY("%u, has a port %d", size, name.sin_port != 0);
    size = -1;
    TRY(getsockname(fd, (struct sockaddr*)&name, &size));
    size = sizeof name;
    TRY(getsockname(fd, (struct sockaddr*)manual_bad_pointer(), &size));
    TRY(getsockname(fd, (struct sockaddr*)&name, (socklen_t*)manual_bad_pointer()));
    TRY(getsockname(fd, NULL, NULL));
    TRY(getsockname(-1, (struct sockaddr*)&name, &size));
    TRY(getsockname(open("/dev/null", O_RDONLY), (struct sockaddr*)&name, &size));
    TRY(getpeername(fd, (struct sockaddr*)&name, &size));
    size = 0;
    TRY(getsockname(fd, (struct sockaddr*)manual_bad_pointer(), &size));
    SAY("%u", size);
    struct sockaddr_un path = {AF_UNIX, "name"}, got;
    int local = socket(AF_UNIX, SOCK_STREAM, 0);
    size = sizeof got;
    TRY(getsockname(local, (struct sockaddr*)&got, &size));
    SAY("%u %d", size, got.sun_family);
    TRY(bind(local, (struct sockaddr*)&path, sizeof path));
    size = sizeof got;
    TRY(getsockname(local, (struct sockaddr*)&got, &size));
    SAY("%u %s", size, got.sun_path);
    int second = socket(AF_UNIX, SOCK_DGRAM, 0);
    TRY(bind(second, (struct sockaddr*)&path, sizeof path));
    TRY(bind(second, (struct sockaddr*)&path, 1));
    TRY(bind(second, (struct sockaddr*)&path, 2));  // the kernel chooses a name
    size = sizeof got;
    TRY(getsockname(second, (struct sockaddr*)&got, &size));
    SAY("%u %d", size, got.sun_path[0]);
    unlink("name");
}

static void listening(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0), datagrams = socket(AF_INET, SOCK_DGRAM, 0);
    TRY(listen(-1, 1));
    TRY(listen(open("/dev/null", O_RDONLY), 1));
    TRY(listen(datagrams, 1));
    TRY(listen(socket(AF_UNIX, SOCK_STREAM, 0), 1));
    TRY(accept(fd, NULL, NULL));
    TRY(listen(fd, 1));  // binds to a port of the kernel's choice
    TRY(listen(fd, -1));
    TRY(listen(fd, 0));
    struct sockaddr_in name;
    socklen_t size = sizeof name;
    getsockname(fd, (struct sockaddr*)&name, &size);
    SAY("%d %#x", name.sin_port != 0, name.sin_addr.s_addr);
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    TRY(accept(fd, NULL, NULL));
    int client = socket(AF_INET, SOCK_STREAM, 0);
    TRY(connect(client, (struct sockaddr*)&name, sizeof name));
    TRY(connect(client, (struct sockaddr*)&name, sizeof name));
    struct pollfd ready = {fd, POLLIN, 0};
    TRY(poll(&ready, 1, 5000));
    TRY(accept4(fd, NULL, NULL, 0x1));
    TRY(accept4(fd, (struct sockaddr*)manual_bad_pointer(), &size, 0));
    TRY(connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr*)&name, sizeof name));
    TRY(poll(&ready, 1, 5000));
    size = 8;
    int peer = accept4(fd, (struct sockaddr*)&name, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    SAY("%u %d %#x", size, fcntl(peer, F_GETFD), fcntl(peer, F_GETFL) & O_NONBLOCK);
    size = sizeof name;
    TRY(getpeername(peer, (struct sockaddr*)&name, &size));
    close(fd);
    getsockname(peer, (struct sockaddr*)&name, &size);
    TRY(connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr*)&name, sizeof name));
    // A backlog that is full.
    struct sockaddr_un path = {AF_UNIX, "full"};
    int local = socket(AF_UNIX, SOCK_STREAM, 0);
    bind(local, (struct sockaddr*)&path, sizeof path);
    TRY(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr*)&path, sizeof path));
    TRY(listen(local, 1));
    for (int i = 0; i < 3; i++)
        TRY(connect(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0), (struct sockaddr*)&path,
                    sizeof path));
    TRY(connect(socket(AF_UNIX, SOCK_DGRAM, 0), (struct sockaddr*)&path, sizeof path));
    unlink("full");
    TRY(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr*)&path, sizeof path));
}

static void pairs(void) {
    int pair[2] = {-7, -7};
    TRY(socketpair(AF_INET, SOCK_STREAM, 0, pair));
    TRY(socketpair(99, SOCK_STREAM, 0, pair));
    TRY(socketpair(AF_UNIX, 99, 0, pair));
    TRY(socketpair(AF_UNIX, SOCK_STREAM, 99, pair));
    TRY(socketpair(AF_UNIX, SOCK_STREAM, 0, (int*)manual_bad_pointer()));
    TRY(socketpair(AF_UNIX, SOCK_STREAM | 0x100, 0, pair));
    const int kinds[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < 3; i++) {
        TRY(socketpair(AF_UNIX, kinds[i] | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair));
        SAY("%d %#x", fcntl(pair[1], F_GETFD), fcntl(pair[0], F_GETFL) & O_NONBLOCK);
        char text[16];
        TRY(read(pair[0], text, 16));
        TRY(write(pair[0], "abc", 3));
        TRY(write(pair[0], "", 0));
        TRY(write(pair[0], "def", 3));
        TRY(recv(pair[1], text, 2, MSG_PEEK | MSG_TRUNC));
        TRY(recv(pair[1], text, 2, MSG_TRUNC));
        TRY(read(pair[1], text, 16));
        TRY(read(pair[1], text, 16));
        TRY(send(pair[0], text, 16, MSG_OOB));
        struct sockaddr_un name;
        socklen_t size = sizeof name;
        TRY(getpeername(pair[0], (struct sockaddr*)&name, &size));
        SAY("%u", size);
        TRY(shutdown(pair[0], 77));
        TRY(shutdown(pair[0], SHUT_WR));
        TRY(write(pair[0], "x", 1));
        struct pollfd end = {pair[1], POLLIN | POLLRDHUP, 0};
        TRY(poll(&end, 1, 0));
        SAY("%#x", end.revents);
        close(pair[0]);
        TRY(write(pair[1], "x", 1));
        TRY(poll(&end, 1, 0));
        SAY("%#x", end.revents);
        struct ucred peer = {1, 1, 1};
        size = sizeof peer;
        TRY(getsockopt(pair[1], SOL_SOCKET, SO_PEERCRED, &peer, &size));
        SAY("%d %u", peer.pid == getpid(), peer.uid);
    }
}

int main(void) {
    manual_begin();
    manual_in_child("names", names);
    manual_in_child("listening", listening);
    manual_in_child("pairs", pairs);
    return guest_passed();
}
