#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "acceptor/network_allowance.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <vector>

namespace gpr {
namespace {

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
    CHECK(refusal(inet, {true, false}).empty());
    CHECK(refusal({{SYS_socket, AF_UNIX}, {SYS_uname}, {SYS_io_uring_setup}}, {}).empty());
}

TEST_CASE("packets need a right of their own") {
    const std::vector<RemoteCall> packet{{SYS_socket, AF_PACKET}};
    const std::string told = refusal(packet, {true, false});
    CHECK(has(told, "'sock:packet'"));
    CHECK(has(told, "CAP_NET_RAW"));
    CHECK(has(told, "--allow-raw-network"));
    CHECK(refusal(packet, {true, true}).empty());
}

TEST_CASE("a peer may ask for what no rule can say") {
    CHECK(has(refusal({{SYS_mmap}}, {true, true}), "mmap"));
    CHECK(has(refusal({{9999}}, {true, true}), "9999"));
}

}  // namespace
}  // namespace gpr
