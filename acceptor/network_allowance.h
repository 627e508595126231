// Whether sessions may make sockets in this host's network.
#pragma once

#include <span>

#include "base/remote_call.h"
#include "base/result.h"

namespace gpr {

struct NetworkAllowance {
    bool sockets = false;
    bool raw = false;                        // CAP_NET_RAW as well
    bool only_own_abstract_sockets = false;  // those of this host are out of reach
};

// Whether a session may be given these calls.
Result<> check_calls(std::span<const RemoteCall> calls, const NetworkAllowance& allowed);

}  // namespace gpr
