// `gpr exec`: this process becomes the program, and a detached grandchild becomes its monitor.
#pragma once

#include <functional>

#include "base/fd.h"
#include "base/result.h"
#include "monitor/rules/exec_options.h"
#include "transport/token.h"

namespace gpr {

// An acceptor inside this command, for the address `local`.
struct LocalAcceptor {
    Fd connection;
    Token token;
};
// log: where that acceptor logs, if anywhere.
using StartLocalAcceptor = std::function<Result<LocalAcceptor>(const LogOptions& log)>;

// Returns only if the program could not be started: 125, 126 or 127, with a message on stderr.
int run_exec(const ExecOptions& options, const StartLocalAcceptor& start_local);

}  // namespace gpr
