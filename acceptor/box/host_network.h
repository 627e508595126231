// What must be known of this host's network to make a session's own one: pasta must be told its
// interface, and the session must not reach the host's own addresses.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace gpr {

struct HostAddress {
    std::string interface;
    bool is_ipv6 = false;
    std::array<uint8_t, 16> bytes{};  // IPv4 uses the first four
    unsigned prefix = 0;              // bits

    [[nodiscard]] std::string text() const;
    [[nodiscard]] bool is_for_links_only() const;  // IPv6 link-local, fe80::/10
};

struct HostNetwork {
    std::vector<HostAddress> addresses;  // including those of the loopback interface
    // The interfaces of the first default routes; empty: none.
    std::string way_out_ipv4, way_out_ipv6;
};

// Examines this process's network namespace.
Result<HostNetwork> look_at_host_network();

// Parse /proc/net/route and /proc/net/ipv6_route.
std::string way_out_ipv4(const std::string& routes);
std::string way_out_ipv6(const std::string& routes);

struct ConnectorPlan {
    std::string interface;             // name of the session's interface: the host's
    std::vector<std::string> options;  // for pasta, if the host has no default route for it to find
};
Result<ConnectorPlan> plan_connector(const HostNetwork& host);

}  // namespace gpr
