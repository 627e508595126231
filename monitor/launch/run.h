// `gpr exec`: this process becomes the program, and a detached grandchild becomes its monitor.
#pragma once

#include <functional>
#include <string>

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

// gdb debugs the program from its first instruction on: it comes to this TCP address, or has the
// other end of this socket. Empty and -1: no gdb.
struct GdbWanted {
    std::string address;
    int socket = -1;

    [[nodiscard]] bool is_wanted() const { return !address.empty() || socket >= 0; }
};

// Returns only if the program could not be started: 125, 126 or 127, with a message on stderr.
// trace_reader: a socket for what happens from the first call on (SessionHost::trace_to); -1: none.
int run_exec(const ExecOptions& options, const StartLocalAcceptor& start_local,
             const GdbWanted& gdb, int trace_reader = -1);

}  // namespace gpr
