// The network interface of a box, and what may leave it.
#pragma once

#include <linux/bpf.h>

#include <cstdint>
#include <string>
#include <vector>

#include "acceptor/box/host_network.h"
#include "acceptor/box/session_ports.h"
#include "base/result.h"

namespace gpr {

// A program for TUNSETFILTEREBPF: which Ethernet frames leave the box. Not those to this host, and
// nothing but IP.
std::vector<bpf_insn> frames_to_others(const std::vector<HostAddress>& host);

struct BoxInterface {
    std::string name;
    const std::vector<HostAddress>& host;  // what it is kept from
    uint32_t group = 0;                    // of the host, whose processes may send echo requests
    PortRange ports;                       // that the kernel chooses from; none: as ever
};

// In the box's network namespace, for the caller that is in it as the host's root. The interface
// lives as long as the namespace; who opens it by its name gets its frames.
Result<> make_box_interface(const BoxInterface& wanted);

}  // namespace gpr
