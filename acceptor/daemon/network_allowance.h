// Whether sessions may make sockets here, and in which network.
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
    bool only_own_abstract_sockets = false;  // those of this host are out of reach
    bool host = false;                       // this host's network, and not one of the session's
    std::string connector;                   // the program that joins a session's network to it
    PortRange ports;                         // of this host, for what sessions listen on
    uint16_t ports_each = 0;                 // of them, for each session

    [[nodiscard]] bool is_of_host() const { return host || raw; }
};

// Whether a session may be given these calls.
Result<> check_calls(std::span<const RemoteCall> calls, const NetworkAllowance& allowed);

}  // namespace gpr
