// Sockets of every kind keep what is queued in them, their names and their options.
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "state.h"

static void set_option(int fd, int level, int name, int value) {
    EXPECT_EQ(setsockopt(fd, level, name, &value, sizeof value), 0);
}
static int option(int fd, int level, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    return getsockopt(fd, level, name, &value, &size) == 0 ? value : -1;
}

static int stream[2];
static void set_stream(void) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream), 0);
    set_option(stream[0], SOL_SOCKET, SO_PASSCRED, 1);
    EXPECT_EQ(send(stream[1], "unread", 6, 0), 6);
    EXPECT_EQ(shutdown(stream[1], SHUT_WR), 0);
}
static void has_stream(void) {
    char byte;
    EXPECT_EQ(fcntl(stream[0], F_GETFD), FD_CLOEXEC);
    gives(stream[0], "unread");
    EXPECT_EQ(read(stream[0], &byte, 1), 0);
    EXPECT_EQ(send(stream[0], "back", 4, 0), 4);
    gives(stream[1], "back");
    EXPECT_ERRNO(send(stream[1], "x", 1, MSG_NOSIGNAL), EPIPE);
}
static void has_peer(void) {
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    EXPECT_EQ(option(stream[0], SOL_SOCKET, SO_PASSCRED), 1);
    EXPECT_EQ(getsockopt(stream[0], SOL_SOCKET, SO_PEERCRED, &peer, &size), 0);
    EXPECT(peer.pid == getpid() && peer.uid == getuid() && peer.gid == getgid());
}

static int datagrams[2], packets[2];
static void set_datagrams(void) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams), 0);
    EXPECT_EQ(send(datagrams[1], "first", 5, 0), 5);
    EXPECT_EQ(send(datagrams[1], "", 0, 0), 0);
    EXPECT_EQ(send(datagrams[1], "third", 5, 0), 5);
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, packets), 0);
    EXPECT_EQ(send(packets[0], "one", 3, 0), 3);
    EXPECT_EQ(send(packets[0], "two", 3, 0), 3);
}
static void has_datagrams(void) {
    char buffer[8];
    gives(datagrams[0], "first");
    EXPECT_EQ(recv(datagrams[0], buffer, sizeof buffer, 0), 0);
    gives(datagrams[0], "third");
    is_empty(datagrams[0]);
}
static void has_packets(void) {
    EXPECT_EQ(option(packets[1], SOL_SOCKET, SO_TYPE), SOCK_SEQPACKET);
    gives(packets[1], "one");
    gives(packets[1], "two");
}

// A descriptor that has been sent and not yet received is open nowhere else.
static int carriers[2];
static void set_sent_descriptor(void) {
    char space[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {"x", 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    int pipes[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, carriers), 0);
    EXPECT_EQ(pipe(pipes), 0);
    EXPECT_EQ(write(pipes[1], "in flight", 9), 9);
    struct cmsghdr* head = CMSG_FIRSTHDR(&message);
    *head = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(head), &pipes[0], sizeof(int));
    EXPECT_EQ(sendmsg(carriers[1], &message, 0), 1);
    EXPECT_EQ(close(pipes[0]), 0);
    EXPECT_EQ(close(pipes[1]), 0);
}
static void receives_descriptor(void) {
    char space[CMSG_SPACE(sizeof(int))] = {0}, byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    EXPECT_EQ(recvmsg(carriers[0], &message, 0), 1);
    EXPECT(CMSG_FIRSTHDR(&message) != NULL);
    int fd = -1;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    gives(fd, "in flight");
    EXPECT_EQ(read(fd, &byte, 1), 0);
}

// A listener by a name in the file system with a client in its queue, who has written.
static int listener, client;
static void set_listener(void) {
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "listener"};
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    client = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(bind(listener, (struct sockaddr*)&name, sizeof name), 0);
    EXPECT_EQ(listen(listener, 2), 0);
    EXPECT_EQ(connect(client, (struct sockaddr*)&name, sizeof name), 0);
    EXPECT_EQ(send(client, "early", 5, 0), 5);
}
static void accepts(void) {
    struct sockaddr_un name = {0};
    socklen_t size = sizeof name;
    EXPECT_EQ(option(listener, SOL_SOCKET, SO_ACCEPTCONN), 1);
    int fd = accept(listener, NULL, NULL);
    EXPECT(fd >= 0);
    gives(fd, "early");
    EXPECT_EQ(getpeername(client, (struct sockaddr*)&name, &size), 0);
    EXPECT(strcmp(name.sun_path, "listener") == 0);
    EXPECT_EQ(unlink("listener"), 0);
}
static int abstract;
static void set_abstract_name(void) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    abstract = socket(AF_UNIX, SOCK_DGRAM, 0);
    EXPECT_EQ(bind(abstract, (struct sockaddr*)&name, sizeof name.sun_family), 0);  // it gets one
}
static void has_abstract_name(void) {
    struct sockaddr_un name = {0};
    socklen_t size = sizeof name;
    EXPECT_EQ(getsockname(abstract, (struct sockaddr*)&name, &size), 0);
    EXPECT_EQ(size, sizeof name.sun_family + 6);
    int other = socket(AF_UNIX, SOCK_DGRAM, 0);
    EXPECT_ERRNO(bind(other, (struct sockaddr*)&name, size), EADDRINUSE);
    EXPECT_EQ(sendto(other, "named", 5, 0, (struct sockaddr*)&name, size), 5);
    gives(abstract, "named");
}

static struct sockaddr_in loopback(int fd) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof name;
    if (fd >= 0) getsockname(fd, (struct sockaddr*)&name, &size);
    return name;
}
static int tcp_listener, tcp[2], queued_client;
static void set_tcp(void) {
    struct sockaddr_in name = loopback(-1);
    tcp_listener = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(bind(tcp_listener, (struct sockaddr*)&name, sizeof name), 0);
    EXPECT_EQ(listen(tcp_listener, 5), 0);
    name = loopback(tcp_listener);
    tcp[0] = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(tcp[0], (struct sockaddr*)&name, sizeof name), 0);
    EXPECT((tcp[1] = accept(tcp_listener, NULL, NULL)) >= 0);
    queued_client = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(queued_client, (struct sockaddr*)&name, sizeof name), 0);
    EXPECT_EQ(send(tcp[0], "stream", 6, 0), 6);
    EXPECT_EQ(send(tcp[0], "!", 1, MSG_OOB), 1);
    set_option(tcp[0], IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(tcp[0], SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(tcp[0], IPPROTO_TCP, TCP_KEEPIDLE, 77);
    set_option(tcp[0], IPPROTO_TCP, TCP_KEEPINTVL, 13);
    set_option(tcp[0], IPPROTO_TCP, TCP_USER_TIMEOUT, 4321);
}
static void has_tcp(void) {
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    gives(tcp[1], "stream");
    EXPECT_EQ(getsockopt(tcp[1], IPPROTO_TCP, TCP_INFO, &info, &size), 0);
    EXPECT_EQ(info.tcpi_state, TCP_ESTABLISHED);
    EXPECT_EQ(shutdown(tcp[1], SHUT_WR), 0);
    char byte;
    EXPECT_EQ(read(tcp[0], &byte, 1), 0);
}
static void has_urgent(void) {
    char byte = 0;
    EXPECT_EQ(recv(tcp[1], &byte, 1, MSG_OOB), 1);
    EXPECT_EQ(byte, '!');
}
static void has_tcp_options(void) {
    EXPECT_EQ(option(tcp[0], IPPROTO_TCP, TCP_NODELAY), 1);
    EXPECT_EQ(option(tcp[0], SOL_SOCKET, SO_KEEPALIVE), 1);
    EXPECT_EQ(option(tcp[0], IPPROTO_TCP, TCP_KEEPIDLE), 77);
    EXPECT_EQ(option(tcp[0], IPPROTO_TCP, TCP_KEEPINTVL), 13);
    EXPECT_EQ(option(tcp[0], IPPROTO_TCP, TCP_USER_TIMEOUT), 4321);
}
static void has_tcp_queue(void) {
    struct sockaddr_in from = {0}, its = loopback(queued_client);
    socklen_t size = sizeof from;
    int fd = accept(tcp_listener, (struct sockaddr*)&from, &size);
    EXPECT(fd >= 0);
    EXPECT_EQ(from.sin_port, its.sin_port);
}

static int udp[2];
static in_port_t udp_port;
static void set_udp(void) {
    for (int i = 0; i < 2; i++) {
        struct sockaddr_in name = loopback(-1);
        udp[i] = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
        EXPECT_EQ(bind(udp[i], (struct sockaddr*)&name, sizeof name), 0);
    }
    struct sockaddr_in name = loopback(udp[0]);
    udp_port = name.sin_port;
    EXPECT_EQ(connect(udp[1], (struct sockaddr*)&name, sizeof name), 0);
    EXPECT_EQ(send(udp[1], "queued", 6, 0), 6);
    set_option(udp[1], IPPROTO_IP, IP_TTL, 9);
    set_option(udp[1], IPPROTO_IP, IP_TOS, 0x10);
    set_option(udp[0], IPPROTO_IP, IP_PKTINFO, 1);
    set_option(udp[0], IPPROTO_IP, IP_RECVTTL, 1);
}
static void has_udp(void) {
    struct sockaddr_in from = {0}, sender = loopback(udp[1]), peer = {0};
    socklen_t size = sizeof from;
    char buffer[16];
    EXPECT_EQ(recvfrom(udp[0], buffer, sizeof buffer, 0, (struct sockaddr*)&from, &size), 6);
    EXPECT(memcmp(buffer, "queued", 6) == 0);
    EXPECT_EQ(from.sin_port, sender.sin_port);
    EXPECT_EQ(getpeername(udp[1], (struct sockaddr*)&peer, &size), 0);
    EXPECT_EQ(peer.sin_port, udp_port);
    is_empty(udp[0]);
}
static void has_ip_options(void) {
    EXPECT_EQ(option(udp[1], IPPROTO_IP, IP_TTL), 9);
    EXPECT_EQ(option(udp[1], IPPROTO_IP, IP_TOS), 0x10);
    EXPECT_EQ(option(udp[0], IPPROTO_IP, IP_PKTINFO), 1);
    EXPECT_EQ(option(udp[0], IPPROTO_IP, IP_RECVTTL), 1);
}
static int group_fd;
static void set_group(void) {
    struct ip_mreq group = {{inet_addr("224.0.0.99")}, {htonl(INADDR_LOOPBACK)}};
    group_fd = socket(AF_INET, SOCK_DGRAM, 0);
    POSSIBLE(setsockopt(group_fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group) == 0);
}
static void has_group(void) {
    struct ip_mreq group = {{inet_addr("224.0.0.99")}, {htonl(INADDR_LOOPBACK)}};
    EXPECT_ERRNO(setsockopt(group_fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group),
                 EADDRINUSE);
    EXPECT_EQ(setsockopt(group_fd, IPPROTO_IP, IP_DROP_MEMBERSHIP, &group, sizeof group), 0);
}
static int six;
static void set_six(void) {
    POSSIBLE((six = socket(AF_INET6, SOCK_STREAM, 0)) >= 0);
    set_option(six, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    set_option(six, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 33);
    set_option(six, IPPROTO_IPV6, IPV6_TCLASS, 0x20);
}
static void has_six(void) {
    EXPECT_EQ(option(six, IPPROTO_IPV6, IPV6_V6ONLY), 1);
    EXPECT_EQ(option(six, IPPROTO_IPV6, IPV6_UNICAST_HOPS), 33);
    EXPECT_EQ(option(six, IPPROTO_IPV6, IPV6_TCLASS), 0x20);
}

static int plain;
static void set_options(void) {
    struct linger linger = {1, 7};
    struct timeval limit = {0, 40000};
    plain = socket(AF_INET, SOCK_DGRAM, 0);
    set_option(plain, SOL_SOCKET, SO_REUSEADDR, 1);
    set_option(plain, SOL_SOCKET, SO_REUSEPORT, 1);
    set_option(plain, SOL_SOCKET, SO_BROADCAST, 1);
    set_option(plain, SOL_SOCKET, SO_RCVBUF, 20000);
    set_option(plain, SOL_SOCKET, SO_SNDBUF, 30000);
    set_option(plain, SOL_SOCKET, SO_RCVLOWAT, 3);
    set_option(plain, SOL_SOCKET, SO_PRIORITY, 4);
    set_option(plain, SOL_SOCKET, SO_TIMESTAMPNS, 1);
    EXPECT_EQ(setsockopt(plain, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
    EXPECT_EQ(setsockopt(plain, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
}
static void has_options(void) {
    EXPECT_EQ(option(plain, SOL_SOCKET, SO_REUSEADDR), 1);
    EXPECT_EQ(option(plain, SOL_SOCKET, SO_REUSEPORT), 1);
    EXPECT_EQ(option(plain, SOL_SOCKET, SO_BROADCAST), 1);
    EXPECT_EQ(option(plain, SOL_SOCKET, SO_RCVBUF), 40000);
    EXPECT_EQ(option(plain, SOL_SOCKET, SO_SNDBUF), 60000);
    EXPECT_EQ(option(plain, SOL_SOCKET, SO_RCVLOWAT), 3);
    EXPECT_EQ(option(plain, SOL_SOCKET, SO_PRIORITY), 4);
    EXPECT_EQ(option(plain, SOL_SOCKET, SO_TIMESTAMPNS), 1);
}
static void has_limits(void) {
    struct linger linger = {0};
    struct timeval limit = {0};
    socklen_t size = sizeof linger;
    char byte;
    EXPECT_EQ(getsockopt(plain, SOL_SOCKET, SO_LINGER, &linger, &size), 0);
    EXPECT(linger.l_onoff == 1 && linger.l_linger == 7);
    size = sizeof limit;
    EXPECT_EQ(getsockopt(plain, SOL_SOCKET, SO_RCVTIMEO, &limit, &size), 0);
    EXPECT(limit.tv_sec == 0 && limit.tv_usec == 40000);
    struct sockaddr_in name = loopback(-1);
    EXPECT_EQ(bind(plain, (struct sockaddr*)&name, sizeof name), 0);
    EXPECT_ERRNO(recv(plain, &byte, 1, 0), EAGAIN);
}
static int marked;
static void set_mark(void) {
    const int mark = 0x1234;
    marked = socket(AF_INET, SOCK_DGRAM, 0);
    POSSIBLE(setsockopt(marked, SOL_SOCKET, SO_MARK, &mark, sizeof mark) == 0);
    POSSIBLE(setsockopt(marked, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3) == 0);
}
static void has_mark(void) {
    char device[IFNAMSIZ] = {0};
    socklen_t size = sizeof device;
    EXPECT_EQ(option(marked, SOL_SOCKET, SO_MARK), 0x1234);
    EXPECT_EQ(getsockopt(marked, SOL_SOCKET, SO_BINDTODEVICE, device, &size), 0);
    EXPECT(strcmp(device, "lo") == 0);
}

// What the filter lets through is cut.
static int filtered[2];
static void set_filter(void) {
    struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, 3)};
    struct sock_fprog program = {1, code};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, filtered), 0);
    EXPECT_EQ(setsockopt(filtered[0], SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
    set_option(filtered[0], SOL_SOCKET, SO_LOCK_FILTER, 1);
}
static void filters(void) {
    EXPECT_EQ(send(filtered[1], "longer", 6, 0), 6);
    gives(filtered[0], "lon");
    EXPECT_ERRNO(setsockopt(filtered[0], SOL_SOCKET, SO_DETACH_FILTER, &filtered, 4), EPERM);
}

static int netlink_fd;
static unsigned netlink_id;
static void set_netlink(void) {
    struct sockaddr_nl name = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
    socklen_t size = sizeof name;
    POSSIBLE((netlink_fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)) >= 0);
    EXPECT_EQ(bind(netlink_fd, (struct sockaddr*)&name, sizeof name), 0);
    EXPECT_EQ(getsockname(netlink_fd, (struct sockaddr*)&name, &size), 0);
    netlink_id = name.nl_pid;
}
static void has_netlink(void) {
    struct sockaddr_nl name = {0};
    socklen_t size = sizeof name;
    EXPECT_EQ(getsockname(netlink_fd, (struct sockaddr*)&name, &size), 0);
    EXPECT(name.nl_pid == netlink_id && name.nl_groups == RTMGRP_LINK);
}

static int raw;
static void set_raw(void) {
    POSSIBLE((raw = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP)) >= 0);
    set_option(raw, IPPROTO_IP, IP_HDRINCL, 1);
}
static void has_raw(void) { EXPECT_EQ(option(raw, IPPROTO_IP, IP_HDRINCL), 1); }

static const struct kind kinds[] = {
    {"stream, half closed, with data", set_stream, has_stream},
    {"credentials of the peer", NULL, has_peer},
    {"datagrams", set_datagrams, has_datagrams},
    {"packets", NULL, has_packets},
    {"descriptor in flight", set_sent_descriptor, receives_descriptor},
    {"listener with a client", set_listener, accepts},
    {"abstract name", set_abstract_name, has_abstract_name},
    {"TCP options", set_tcp, has_tcp_options},
    {"TCP with urgent data", NULL, has_urgent},
    {"TCP with data", NULL, has_tcp},
    {"TCP listener with a client", NULL, has_tcp_queue},
    {"UDP", set_udp, has_udp},
    {"IP options", NULL, has_ip_options},
    {"multicast group", set_group, has_group},
    {"IPv6 options", set_six, has_six},
    {"socket options", set_options, has_options},
    {"linger and limit of time", NULL, has_limits},
    {"mark and device", set_mark, has_mark},
    {"filter", set_filter, filters},
    {"netlink", set_netlink, has_netlink},
    {"raw socket", set_raw, has_raw},
};

int main(void) { return state_run(kinds, sizeof kinds / sizeof *kinds); }
