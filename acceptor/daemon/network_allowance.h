// Whether sessions may make sockets on this host, and in which network.
#pragma once

#include <span>
#include <string>

#include "acceptor/box/session_ports.h"
#include "base/remote_call.h"
#include "base/result.h"

namespace gpr {

struct NetworkAllowance {
    bool sockets = false;
    bool raw = false;                        // CAP_NET_RAW as well, in this host's network
    bool only_own_abstract_sockets = false;  // sessions cannot reach this host's abstract sockets
    bool host = false;                       // this host's network rather than one for each session
    // Program that joins a session's network to this host's.
    std::string connector;
    PortRange ports;          // of this host, forwarded to sessions
    uint16_t ports_each = 0;  // how many for each session

    [[nodiscard]] bool is_of_host() const { return host || raw; }
};

// Whether a session may be given these calls.
Result<> check_calls(std::span<const RemoteCall> calls, const NetworkAllowance& allowed);

}  // namespace gpr
