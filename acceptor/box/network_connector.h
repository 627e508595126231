// Joins a session's own network to this host's by passt's pasta, which opens a socket on this host
// for each flow of the session.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "acceptor/box/session_ports.h"
#include "acceptor/box/session_user.h"
#include "base/fd.h"
#include "base/result.h"

namespace gpr {

// The path of pasta, searched in PATH; an error says what to do without it.
Result<std::string> find_network_connector();

// Checks whether sessions of these users can have networks of their own. If this host has no
// network to share now, that is only logged: it may get one later.
Result<> try_network_connector(const std::string& program, const UserIds& users);

struct ConnectorOptions {
    std::string program;  // from find_network_connector()
    pid_t box_init = -1;  // of a sandbox that has a user
    uint32_t user = 0;    // the sandbox's: the owner of its user namespace
    int cgroup_fd = -1;   // -1: this process's
    // Forwarded to the session from the start; the network's processes keep a copy of their lock.
    // If empty: the ports that the session listens on, once pasta has noticed.
    PortRange ports;
};

// The network ends with this object, and with the thread that made it, which must be the first of
// its process, even if that is killed.
class NetworkConnector {
public:
    // Returns when the box's network works.
    static Result<std::unique_ptr<NetworkConnector>> start(const ConnectorOptions& options);
    ~NetworkConnector();
    NetworkConnector(const NetworkConnector&) = delete;
    NetworkConnector& operator=(const NetworkConnector&) = delete;

private:
    NetworkConnector() = default;

    pid_t pid_ = -1;
    Fd pidfd_;
    Fd alive_;
};

}  // namespace gpr
