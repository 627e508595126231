#include "acceptor/box/host_network.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>

#include <algorithm>

#include "acceptor/box/box_interface.h"

namespace gpr {
namespace {

HostAddress address(const char* interface, const char* text, unsigned prefix) {
    HostAddress made{interface, std::string(text).find(':') != std::string::npos, {}, prefix};
    REQUIRE(inet_pton(made.is_ipv6 ? AF_INET6 : AF_INET, text, made.bytes.data()) == 1);
    return made;
}

using Options = std::vector<std::string>;

TEST_CASE("a host with a router needs no words") {
    HostNetwork host{{address("eth0", "192.0.2.7", 24)}, "eth0", "eth1"};
    CHECK(plan_connector(host)->interface == "eth0");
    CHECK(plan_connector(host)->options.empty());
    host.way_out_ipv4.clear();
    CHECK(plan_connector(host)->interface == "eth1");
}

TEST_CASE("without one its first link is used, and another address of it as the router's") {
    const HostNetwork host{
        {address("lo", "127.0.0.1", 8), address("lo", "::1", 128), address("ib0", "fe80::7", 64),
         address("ib0", "192.0.2.1", 24), address("ib0", "192.0.2.9", 24),
         address("ib0", "2001:db8::5", 64), address("eth0", "198.51.100.1", 24)},
        "",
        ""};
    const auto plan = plan_connector(host);
    REQUIRE(plan);
    CHECK(plan->interface == "ib0");
    CHECK(plan->options == Options{"-i", "ib0", "-a", "192.0.2.1", "-n", "24", "-g", "192.0.2.2",
                                   "-a", "2001:db8::5", "-g", "fe80::1"});
    const auto router_for = [](const char* own, unsigned prefix) {
        return plan_connector({{address("a", own, prefix)}, "", ""})->options.back();
    };
    CHECK(router_for("192.0.2.7", 24) == "192.0.2.1");
    CHECK(router_for("192.0.2.1", 30) == "192.0.2.2");
    CHECK(router_for("192.0.2.2", 31) == "192.0.2.3");
    CHECK(router_for("192.0.2.2", 32) == "192.0.2.3");
}

TEST_CASE("a host with nothing but its loopback has nothing to share") {
    const auto none =
        plan_connector({{address("lo", "127.0.0.1", 8), address("eth0", "fe80::1", 64)}, "", ""});
    REQUIRE_FALSE(none);
    CHECK(none.error().message().find("no network to share") != std::string::npos);
}

TEST_CASE("ways out are read as the kernel writes them") {
    const std::string head = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n";
    const std::string link = "eth1\t0002000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
    const std::string out = "eth0\t00000000\t0102000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n";
    const std::string no_router = "wg0\t00000000\t00000000\t0001\t0\t0\t0\t00000000\t0\t0\t0\n";
    CHECK(way_out_ipv4(head + link + no_router + out) == "eth0");
    CHECK(way_out_ipv4(head + link).empty());
    CHECK(way_out_ipv4("").empty());
    const std::string zero(32, '0'), hop = "fd660000000000000000000000000001";
    const auto line = [&](const std::string& to, const std::string& prefix, const std::string& by,
                          const std::string& flags) {
        return to + " " + prefix + " " + zero + " 00 " + by + " 00000400 00000001 00000000 " +
               flags + "     eth0\n";
    };
    CHECK(way_out_ipv6(line(hop, "40", zero, "00000001") + line(zero, "00", hop, "00000003")) ==
          "eth0");
    CHECK(way_out_ipv6(line(zero, "00", zero, "00200200") + line(hop, "80", hop, "3")).empty());
}

TEST_CASE("each address of the host makes what leaves a box longer, and is in it") {
    const auto plain = frames_to_others({}), more = frames_to_others({address("a", "1.2.3.4", 8)});
    CHECK(more.size() > plain.size());
    const bool found = std::ranges::any_of(
        more, [](const bpf_insn& instruction) { return instruction.imm == 0x01020304; });
    CHECK(found);
}

}  // namespace
}  // namespace gpr
