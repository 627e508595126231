// UDP datagrams with sendto/recvfrom and sendmmsg/recvmmsg keep their bounds and addresses.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "guest.h"

int main(void) {
    int a = socket(AF_INET, SOCK_DGRAM, 0), b = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    CHECK_EQ(bind(a, (struct sockaddr*)&address, size), 0);
    CHECK_EQ(getsockname(a, (struct sockaddr*)&address, &size), 0);
    CHECK_EQ(sendto(b, "ping", 4, 0, (struct sockaddr*)&address, size), 4);
    struct sockaddr_in from;
    char text[8][100];
    size = sizeof from;
    CHECK_EQ(recvfrom(a, text[0], 100, 0, (struct sockaddr*)&from, &size), 4);
    CHECK_EQ(from.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    CHECK_EQ(sendto(a, "pong", 4, 0, (struct sockaddr*)&from, size), 4);
    CHECK_EQ(recv(b, text[0], 100, 0), 4);
    CHECK_EQ(connect(b, (struct sockaddr*)&address, sizeof address), 0);
    struct mmsghdr messages[5] = {0};
    struct iovec parts[5];
    for (int i = 0; i < 5; i++) {
        parts[i] = (struct iovec){text[i], (size_t)i * 10};
        guest_fill(text[i], 100, (uint64_t)i);
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    CHECK_EQ(sendmmsg(b, messages, 5, 0), 5);
    memset(text, 0, sizeof text);
    for (int i = 0; i < 5; i++) parts[i].iov_len = 100;
    CHECK_EQ(recvmmsg(a, messages, 5, 0, NULL), 5);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(messages[i].msg_len, i * 10);
        CHECK(guest_is_filled(text[i], (size_t)i * 10, (uint64_t)i));
    }
    return guest_passed();
}
