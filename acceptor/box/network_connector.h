// What joins a session's own network to this host's: passt's pasta, which opens a socket here for
// each flow there.
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

// The path of pasta, by this process's PATH; an error that says what to do without it.
Result<std::string> find_network_connector();

// Whether sessions of these users can have a network of their own. That this host has none to share
// now is told to the log: it may get its addresses later.
Result<> try_network_connector(const std::string& program, const UserIds& users);

struct ConnectorOptions {
    std::string program;  // of find_network_connector()
    pid_t box_init = -1;  // of a sandbox with a user
    uint32_t user = 0;    // that of the sandbox: the owner of its user namespace
    int cgroup_fd = -1;   // -1: that of this process
    // By which it is reached, without delay; their lock is kept by a copy of its descriptor. None:
    // those that it listens on, as soon as pasta has noticed.
    PortRange ports;
};

// It ends with this, and with the process (of one thread) that made it, however that ends.
class NetworkConnector {
public:
    // Returns once the box has its network.
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
