// Whether a program that began on one host can go on on another: pure, from the two handshakes.
#pragma once

#include <string>
#include <vector>

#include "transport/host.h"

namespace gpr {

// What the initiator has and a program may have seen there, and the acceptor lacks, in words a
// user can act on: "cpu feature avx512f", "page size 4096". Empty: they match.
std::vector<std::string> lacking_at(const HostDescription& acceptor,
                                    const HostDescription& initiator);

}  // namespace gpr
