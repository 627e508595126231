// The network interface of a box, and the filter for what may leave it.
#pragma once

#include <linux/bpf.h>

#include <cstdint>
#include <string>
#include <vector>

#include "acceptor/box/host_network.h"
#include "acceptor/box/session_ports.h"
#include "base/result.h"

namespace gpr {

// A program for TUNSETFILTEREBPF that lets only IP leave the box, and nothing addressed to this
// host.
std::vector<bpf_insn> frames_to_others(const std::vector<HostAddress>& host);

struct BoxInterface {
    std::string name;
    const std::vector<HostAddress>& host;  // addresses that it must not reach
    uint32_t group = 0;                    // group id on the host that may send echo requests
    // For ports that the kernel chooses; empty: the kernel's default.
    PortRange ports;
};

// To be called in the box's network namespace, with the host's root privileges. The interface
// exists as long as the namespace; a process that opens it by name gets its frames.
Result<> make_box_interface(const BoxInterface& wanted);

}  // namespace gpr
