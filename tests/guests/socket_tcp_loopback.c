// A TCP server thread and a client exchange 4 MiB over the loopback.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>

#include "guest.h"

enum { SIZE = 4 << 20 };
static int listener;

static void* server(void* unused) {
    int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    CHECK(connection >= 0);
    char buffer[10000];
    ssize_t got;
    while ((got = recv(connection, buffer, sizeof buffer, 0)) > 0)
        for (ssize_t at = 0; at < got;) {
            ssize_t sent = send(connection, buffer + at, (size_t)(got - at), 0);
            CHECK(sent > 0);
            at += sent;
        }
    CHECK_EQ(close(connection), 0);
    return unused;
}

static void* sender(void* argument) {
    int fd = (int)(intptr_t)argument;
    char* data = malloc(SIZE);
    guest_fill(data, SIZE, 6);
    for (size_t at = 0; at < SIZE;) {
        ssize_t sent = send(fd, data + at, SIZE - at, 0);
        CHECK(sent > 0);
        at += (size_t)sent;
    }
    CHECK_EQ(shutdown(fd, SHUT_WR), 0);
    free(data);
    return NULL;
}

int main(void) {
    listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    CHECK_EQ(bind(listener, (struct sockaddr*)&address, size), 0);
    CHECK_EQ(listen(listener, 1), 0);
    CHECK_EQ(getsockname(listener, (struct sockaddr*)&address, &size), 0);
    pthread_t server_thread, sender_thread;
    CHECK_EQ(pthread_create(&server_thread, NULL, server, NULL), 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_EQ(connect(fd, (struct sockaddr*)&address, size), 0);
    int one = 1;
    CHECK_EQ(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), 0);
    CHECK_EQ(pthread_create(&sender_thread, NULL, sender, (void*)(intptr_t)fd), 0);
    char* back = malloc(SIZE);
    CHECK_EQ(recv(fd, back, SIZE, MSG_WAITALL), SIZE);
    CHECK(guest_is_filled(back, SIZE, 6));
    CHECK_EQ(recv(fd, back, 1, 0), 0);
    CHECK_EQ(pthread_join(server_thread, NULL), 0);
    CHECK_EQ(pthread_join(sender_thread, NULL), 0);
    CHECK_EQ(close(listener), 0);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_ERRNO(connect(fd, (struct sockaddr*)&address, size), ECONNREFUSED);
    return guest_passed();
}
