// `--acceptor local`: an acceptor without a daemon, for one session, on home's own host.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "acceptor/daemon/session_order.h"
#include "base/fd.h"
#include "base/result.h"
#include "transport/token.h"

namespace gpr {

struct EmbeddedAcceptorOptions {
    std::string log_file;  // empty: no log, because stderr is the program's
    std::string log_level = "warning";
    std::vector<std::string> features;  // this host's
};

struct EmbeddedAcceptor {
    Fd connection;   // for greet_acceptor, with a plain endpoint
    Token token;     // known to nobody else
    pid_t pid = -1;  // a child to be reaped
};

// Starts a worker that dies with the calling thread and with the connection. It keeps none of the
// caller's descriptors. To be called before the process has other threads.
Result<EmbeddedAcceptor> start_embedded_acceptor(const EmbeddedAcceptorOptions& options = {},
                                                 const SessionStart& start = execute_session);

}  // namespace gpr
