// Ports of this host through which a session with its own network is reached.
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace gpr {

struct PortRange {
    uint16_t first = 0, count = 0;
    [[nodiscard]] bool none() const { return count == 0; }
    [[nodiscard]] std::string text() const;  // FIRST-LAST
    bool operator==(const PortRange&) const = default;
};

// Parses "FIRST-LAST"; the ports reserved for root are refused.
Result<PortRange> parse_port_range(const std::string& text);
// How many each session gets.
Result<uint16_t> share_of_ports(const PortRange& all, unsigned sessions);

class SessionPorts {
public:
    // Takes `share` ports that no other session of this host has.
    static Result<SessionPorts> take(const PortRange& all, uint16_t share,
                                     const std::string& list = "/run/gpr.ports");

    [[nodiscard]] const PortRange& range() const { return range_; }

private:
    PortRange range_;
    Fd lock_;  // whoever has a copy has the ports
};

}  // namespace gpr
