// What of this host's network a session is given: who joins the two has to be told, and what is the
// host itself is kept from it.
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
    std::array<uint8_t, 16> bytes{};  // the first four, in IPv4
    unsigned prefix = 0;              // bits

    [[nodiscard]] std::string text() const;
    [[nodiscard]] bool is_for_links_only() const;  // of IPv6, fe80::/10
};

struct HostNetwork {
    std::vector<HostAddress> addresses;  // also those of the loopback interface
    // The interfaces of the first routes to everywhere; empty: there is none.
    std::string way_out_ipv4, way_out_ipv6;
};

// Of this process's network namespace.
Result<HostNetwork> look_at_host_network();

// As /proc/net/route and /proc/net/ipv6_route have them.
std::string way_out_ipv4(const std::string& routes);
std::string way_out_ipv6(const std::string& routes);

struct ConnectorPlan {
    std::string interface;             // what the session's is called: as the host's
    std::vector<std::string> options;  // of pasta, where the host has no way out for it to find
};
Result<ConnectorPlan> plan_connector(const HostNetwork& host);

}  // namespace gpr
