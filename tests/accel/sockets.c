// Talks to the server of tests/scenarios/sockets: what it prints is the same wherever its sockets
// are. sockets ADDRESS PORT [epoll] [fork] [answered]; answered: where nobody says that a port is
// closed. sockets rights: descriptors sent over a pair.
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BULK = 3 << 20 };

static void need(int good, const char* what) {
    if (good) return;
    fprintf(stderr, "%s: errno %d %s\n", what, errno, strerror(errno));
    exit(1);
}

static struct sockaddr_in server;

static int connected(int type) {
    int s = socket(AF_INET, type, 0);
    need(s >= 0, "socket");
    need(connect(s, (struct sockaddr*)&server, sizeof server) == 0, "connect");
    return s;
}

static void say(int s, const char* text) {
    need(send(s, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text), "send");
}

// A line, without its end.
static char* hear(int s, char* line, size_t room) {
    size_t n = 0;
    while (n + 1 < room && recv(s, line + n, 1, 0) == 1 && line[n] != '\n') n++;
    line[n] = 0;
    return line;
}

static void names(int s) {
    struct sockaddr_in at;
    socklen_t size = sizeof at;
    need(getsockname(s, (struct sockaddr*)&at, &size) == 0, "getsockname");
    printf("from %s", inet_ntoa(at.sin_addr));
    size = sizeof at;
    need(getpeername(s, (struct sockaddr*)&at, &size) == 0, "getpeername");
    printf(" to %s, port as told: %d\n", inet_ntoa(at.sin_addr), at.sin_port == server.sin_port);
    int type = 0;
    size = sizeof type;
    need(getsockopt(s, SOL_SOCKET, SO_TYPE, &type, &size) == 0, "getsockopt");
    printf("type %d\n", type);
}

struct flow {
    int socket;
    char* bytes;
};

static void* send_all(void* argument) {
    struct flow* flow = argument;
    for (size_t done = 0; done < BULK;) {
        size_t half = (BULK - done + 1) / 2;
        struct iovec parts[2] = {{flow->bytes + done, half},
                                 {flow->bytes + done + half, BULK - done - half}};
        ssize_t n = writev(flow->socket, parts, 2);
        need(n > 0, "writev");
        done += (size_t)n;
    }
    return NULL;
}

// Both directions at once, or they would wait for each other.
static void bulk(int s) {
    char* out = malloc(BULK);
    char* in = malloc(BULK);
    uint32_t x = 1;
    for (size_t i = 0; i < BULK; i++) out[i] = (char)((x = x * 1664525 + 1013904223) >> 24);
    struct flow flow = {s, out};
    pthread_t sender;
    need(pthread_create(&sender, NULL, send_all, &flow) == 0, "pthread_create");
    size_t got = 0;
    while (got < BULK) {
        ssize_t n = recv(s, in + got, BULK - got, MSG_WAITALL);
        need(n > 0, "recv");
        got += (size_t)n;
    }
    pthread_join(sender, NULL);
    printf("bulk came back %s\n", memcmp(in, out, BULK) == 0 ? "as it was" : "changed");
    free(out);
    free(in);
}

static void datagrams(void) {
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    need(s >= 0, "socket");
    for (int i = 0; i < 20; i++) {
        char text[64], back[64] = {0};
        snprintf(text, sizeof text, "datagram %d", i);
        need(sendto(s, text, strlen(text), 0, (struct sockaddr*)&server, sizeof server) > 0,
             "sendto");
        struct sockaddr_in from;
        struct iovec part = {back, sizeof back};
        struct msghdr message = {
            .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &part, .msg_iovlen = 1};
        need(recvmsg(s, &message, 0) > 0, "recvmsg");
        if (i % 10 == 0) printf("%s from %s\n", back, inet_ntoa(from.sin_addr));
    }
    close(s);
}

// A pipe of home and a connection in one set.
static void waits(int s) {
    int ends[2];
    need(pipe(ends) == 0, "pipe");
    char line[64];
    for (int i = 0; i < 4; i++) {
        if (i % 2 == 0) say(s, "echo later\n");
        if (i % 2 == 1) need(write(ends[1], "x", 1) == 1, "write");
        struct pollfd set[2] = {{s, POLLIN, 0}, {ends[0], POLLIN, 0}};
        int ready = poll(set, 2, 10000);
        printf("poll: %d, connection %d, pipe %d\n", ready, set[0].revents, set[1].revents);
        if (set[0].revents) printf("heard %s\n", hear(s, line, sizeof line));
        if (set[1].revents) need(read(ends[0], line, 1) == 1, "read");
    }
    struct pollfd none = {s, POLLIN, 0};
    printf("nothing more: %d\n", poll(&none, 1, 20));
}

static void is_called_back(int s) {
    int l = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at;
    socklen_t size = sizeof at;
    need(getsockname(s, (struct sockaddr*)&at, &size) == 0, "getsockname");
    at.sin_port = 0;
    int on = 1;
    need(setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0, "setsockopt");
    need(bind(l, (struct sockaddr*)&at, sizeof at) == 0, "bind");
    need(listen(l, 4) == 0, "listen");
    size = sizeof at;
    need(getsockname(l, (struct sockaddr*)&at, &size) == 0, "getsockname");
    char text[64], line[64];
    snprintf(text, sizeof text, "call %d\n", ntohs(at.sin_port));
    say(s, text);
    int c = accept4(l, (struct sockaddr*)&at, &size, SOCK_CLOEXEC);
    need(c >= 0, "accept4");
    printf("called by %s: %s\n", inet_ntoa(at.sin_addr), hear(c, line, sizeof line));
    close(c);
    close(l);
}

static void refused(void) {
    struct sockaddr_in nobody = server;
    nobody.sin_port = htons(1);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    int result = connect(s, (struct sockaddr*)&nobody, sizeof nobody);
    printf("nobody there: %d %s\n", result, strerror(errno));
    close(s);
    printf("closed: %d %s\n", (int)send(s, "x", 1, 0), strerror(errno));
}

static void epolls(int s) {
    int e = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {EPOLLIN, {.u32 = 77}};
    need(epoll_ctl(e, EPOLL_CTL_ADD, s, &event) == 0, "epoll_ctl");
    char line[64];
    for (int i = 0; i < 5; i++) {
        say(s, "echo later\n");
        struct epoll_event got = {0};
        int n = epoll_wait(e, &got, 1, 10000);
        printf("epoll: %d, %u, heard %s\n", n, got.data.u32, hear(s, line, sizeof line));
    }
    close(e);
}

static void in_child(int s) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        char line[64];
        say(s, "echo from the child\n");
        printf("child heard %s\n", hear(s, line, sizeof line));
        fflush(stdout);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    printf("child ended with %d\n", status);
}

static int send_fd(int pair, int fd) {
    char byte = 'f', control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    return sendmsg(pair, &message, 0) == 1 ? 0 : errno;
}

static int receive_fd(int pair) {
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    need(recvmsg(pair, &message, 0) == 1, "recvmsg");
    int fd = -1;
    struct cmsghdr* c = CMSG_FIRSTHDR(&message);
    if (c) memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}

static int rights(void) {
    int pair[2], other[2], ends[2];
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, other) == 0, "socketpair");
    need(pipe(ends) == 0, "pipe");
    printf("high numbers: %d\n", pair[0] >= 4096);
    printf("one of the same family: %s\n", strerror(send_fd(pair[0], other[0])));
    int got = receive_fd(pair[1]);
    char text[8] = {0};
    need(write(other[1], "through", 7) == 7 && read(got, text, 7) == 7, "the one that came");
    printf("it is the same: %s\n", text);
    printf("a pipe: %s\n", strerror(send_fd(pair[0], ends[0])));
    return 0;
}

int main(int count, char** words) {
    if (count == 2 && strcmp(words[1], "rights") == 0) return rights();
    if (count < 3) return 2;
    server.sin_family = AF_INET;
    server.sin_port = htons((uint16_t)atoi(words[2]));
    need(inet_aton(words[1], &server.sin_addr), "the address");
    setvbuf(stdout, NULL, _IOLBF, 0);
    int s = connected(SOCK_STREAM);
    names(s);
    char line[64];
    say(s, "echo hello\n");
    printf("heard %s\n", hear(s, line, sizeof line));
    waits(s);
    is_called_back(s);
    datagrams();
    if (strcmp(words[count - 1], "answered") != 0) refused();
    for (int i = 3; i < count; i++) {
        if (strcmp(words[i], "epoll") == 0) epolls(s);
        if (strcmp(words[i], "fork") == 0) in_child(s);
    }
    char text[64];
    snprintf(text, sizeof text, "bulk %d\n", BULK);
    say(s, text);
    bulk(s);
    need(shutdown(s, SHUT_WR) == 0, "shutdown");
    printf("the end: %d\n", (int)recv(s, line, sizeof line, 0));
    return 0;
}
