#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "oracle.h"

namespace gpr {
namespace {

using namespace oracle;

TEST_CASE("oracle: sockets and their names") {
    Fd listener(socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(forwarded(SYS_bind, listener.get(), &any, sizeof any) == 0);
    REQUIRE(listen(listener.get(), 4) == 0);
    struct Name {
        sockaddr_storage address;
        socklen_t length;
    };
    Both<Name> names;
    names.by_forward.length = names.by_direct.length = sizeof(sockaddr_storage);
    CHECK(forwarded(SYS_getsockname, listener.get(), &names.by_forward.address,
                    &names.by_forward.length) == 0);
    CHECK(direct(SYS_getsockname, listener.get(), &names.by_direct.address,
                 &names.by_direct.length) == 0);
    CHECK(names.agree());
    // A buffer too small: cut, but the true length is told.
    names.by_forward.length = names.by_direct.length = 5;
    CHECK(forwarded(SYS_getsockname, listener.get(), &names.by_forward.address,
                    &names.by_forward.length) == 0);
    CHECK(direct(SYS_getsockname, listener.get(), &names.by_direct.address,
                 &names.by_direct.length) == 0);
    CHECK(names.by_forward.length == sizeof(sockaddr_in));
    CHECK(names.agree());
    Fd client(socket(AF_INET, SOCK_STREAM, 0));
    CHECK(forwarded(SYS_connect, client.get(), &names.by_direct.address, sizeof(sockaddr_in)) == 0);
    names.by_forward.length = sizeof(sockaddr_storage);
    Fd server(static_cast<int>(forwarded(SYS_accept4, listener.get(), &names.by_forward.address,
                                         &names.by_forward.length, 0)));
    REQUIRE(server);
    sockaddr_in client_name{};
    socklen_t client_length = sizeof client_name;
    REQUIRE(getsockname(client.get(), reinterpret_cast<sockaddr*>(&client_name), &client_length) ==
            0);
    CHECK(std::memcmp(&names.by_forward.address, &client_name, sizeof client_name) == 0);
    Both<std::array<int, 4>> option;
    socklen_t option_length = 4;
    int keep = 1;
    CHECK(forwarded(SYS_setsockopt, client.get(), SOL_SOCKET, SO_KEEPALIVE, &keep, 4) == 0);
    CHECK(forwarded(SYS_getsockopt, client.get(), SOL_SOCKET, SO_KEEPALIVE, &option.by_forward,
                    &option_length) == 0);
    CHECK(option.by_forward[0] == 1);
    CHECK(option.by_forward[1] == 0x5a5a5a5a);
    CHECK(option_length == 4);
}

TEST_CASE("oracle: datagrams") {
    Fd a(socket(AF_INET, SOCK_DGRAM, 0)), b(socket(AF_INET, SOCK_DGRAM, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(bind(b.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
    socklen_t length = sizeof to;
    REQUIRE(getsockname(b.get(), reinterpret_cast<sockaddr*>(&to), &length) == 0);
    CHECK(forwarded(SYS_sendto, a.get(), "datagram", 8, 0, &to, sizeof to) == 8);
    CHECK(forwarded(SYS_sendto, a.get(), "datagram", 8, 0, &to, sizeof to) == 8);
    char text[10] = ".........";
    sockaddr_in from{};
    length = sizeof from;
    CHECK(forwarded(SYS_recvfrom, b.get(), text, 9, 0, &from, &length) == 8);
    CHECK(std::string_view(text) == "datagram.");
    CHECK(length == sizeof from);
    CHECK(from.sin_family == AF_INET);
    // With MSG_TRUNC the result is more than the buffer holds.
    CHECK(forwarded(SYS_recvfrom, b.get(), text + 1, 2, MSG_TRUNC, nullptr, nullptr) == 8);
    CHECK(std::string_view(text) == "ddaagram.");
    CHECK(forwarded(SYS_recvfrom, b.get(), text, 2, MSG_DONTWAIT, &from, &length) == -EAGAIN);
}

TEST_CASE("oracle: messages that carry a descriptor") {
    int pair[2];
    CHECK(forwarded(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
    Fd a(pair[0]), b(pair[1]), carried(open("/dev/null", O_RDONLY));
    char one[4] = "ab", two[8] = "cdefg";
    iovec vectors[2]{{one, 2}, {two, 5}};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int)) + 40]{};
    msghdr message{};
    message.msg_iov = vectors;
    message.msg_iovlen = 2;
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int));
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    *c = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    int raw = carried.get();
    std::memcpy(CMSG_DATA(c), &raw, sizeof raw);
    CHECK(forwarded(SYS_sendmsg, a.get(), &message, 0) == 7);
    std::memset(one, '.', sizeof one);
    std::memset(two, '.', sizeof two);
    std::memset(control, 0x5a, sizeof control);
    vectors[0].iov_len = 4;
    vectors[1].iov_len = 8;
    sockaddr_un name{};
    message.msg_name = &name;
    message.msg_namelen = sizeof name;
    message.msg_controllen = sizeof control;
    message.msg_flags = -1;
    msghdr before = message;
    CHECK(forwarded(SYS_recvmsg, b.get(), &message, MSG_CMSG_CLOEXEC) == 7);
    CHECK(std::string_view(one, 4) == "abcd");
    CHECK(std::string_view(two, 8) == "efg.....");
    CHECK(message.msg_iov == before.msg_iov);
    CHECK(message.msg_control == before.msg_control);
    CHECK(message.msg_name == before.msg_name);
    CHECK(message.msg_namelen == 0);
    CHECK(message.msg_controllen == CMSG_SPACE(sizeof(int)));
    CHECK(message.msg_flags == MSG_CMSG_CLOEXEC);
    c = CMSG_FIRSTHDR(&message);
    REQUIRE(c->cmsg_type == SCM_RIGHTS);
    int received = -1;
    std::memcpy(&received, CMSG_DATA(c), sizeof received);
    CHECK(fcntl(received, F_GETFD) == FD_CLOEXEC);
    close(received);
    CHECK(forwarded(SYS_recvmsg, b.get(), &before, MSG_DONTWAIT) == -EAGAIN);
}

}  // namespace
}  // namespace gpr
