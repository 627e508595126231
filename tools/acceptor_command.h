// `gpr acceptor`: its options, in the form that the daemon takes.
#pragma once

#include "acceptor/daemon/acceptor_options.h"
#include "base/result.h"
#include "tools/command_line.h"

namespace gpr {

Result<AcceptorOptions> make_acceptor_options(const ParsedCommand& parsed,
                                              const Environment& environment);

}  // namespace gpr
