// Ports of this host by which a session with a network of its own is reached.
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

// "FIRST-LAST", of those that are not reserved for root.
Result<PortRange> parse_port_range(const std::string& text);
// What each of so many sessions gets of them.
Result<uint16_t> share_of_ports(const PortRange& all, unsigned sessions);

class SessionPorts {
public:
    // So many that no other session of this host has.
    static Result<SessionPorts> take(const PortRange& all, uint16_t share,
                                     const std::string& list = "/run/gpr.ports");

    [[nodiscard]] const PortRange& range() const { return range_; }

private:
    PortRange range_;
    Fd lock_;  // who has a copy has the ports
};

}  // namespace gpr
