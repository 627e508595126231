#include "acceptor/daemon/network_allowance.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <vector>

namespace gpr {
namespace {

constexpr bool yes = true;
const NetworkAllowance with_raw{yes, yes, false, false, {}, {}};
const NetworkAllowance of_host{yes, false, false, yes, {}, {}};

std::string refusal(const std::vector<RemoteCall>& calls, NetworkAllowance allowed) {
    auto checked = check_calls(calls, allowed);
    return checked ? "" : checked.error().message();
}

bool has(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

TEST_CASE("the network is given only where the administrator says so") {
    const std::vector<RemoteCall> inet{{SYS_socket, AF_INET}};
    const std::string told = refusal(inet, {});
    CHECK(has(told, "'sock:inet'"));
    CHECK(has(told, "'gpr acceptor --allow-network'"));
    CHECK(refusal(inet, {true}).empty());
    CHECK(refusal({{SYS_socket, AF_UNIX}, {SYS_uname}, {SYS_io_uring_setup}}, {}).empty());
}

TEST_CASE("packets need a right of their own") {
    const std::vector<RemoteCall> packet{{SYS_socket, AF_PACKET}};
    const std::string told = refusal(packet, {true});
    CHECK(has(told, "'sock:packet'"));
    CHECK(has(told, "CAP_NET_RAW"));
    CHECK(has(told, "--allow-raw-network"));
    CHECK(refusal(packet, with_raw).empty());
}

TEST_CASE("a network of the session's own has no families that belong to no network") {
    for (const RemoteCall& call : {RemoteCall{SYS_socket, AF_VSOCK}, RemoteCall{SYS_socket}}) {
        const std::string told = refusal({call}, {true});
        CHECK(has(told, call.family == AF_VSOCK ? "'sock:vsock'" : "'sys:socket'"));
        CHECK(has(told, "--allow-host-network"));
        CHECK(refusal({call}, of_host).empty());
        CHECK(refusal({call}, with_raw).empty());
    }
    CHECK(refusal({{SYS_socket, AF_INET6}, {SYS_socket, AF_NETLINK}}, {true}).empty());
    CHECK(refusal({{SYS_socketpair}}, {true}).empty());
}

TEST_CASE("a peer may ask for what no rule can say") {
    CHECK(has(refusal({{SYS_mmap}}, with_raw), "mmap"));
    CHECK(has(refusal({{9999}}, with_raw), "9999"));
}

}  // namespace
}  // namespace gpr
