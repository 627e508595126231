// `gpr attach`: a process that runs already gets a session.
#pragma once

#include <sys/types.h>

#include "monitor/launch/run.h"

namespace gpr {

// Returns when the session is over: 0, or 125 with a message on stderr. The process goes on as it
// was where it could not be attached.
int run_attach(const ExecOptions& options, pid_t pid, const StartLocalAcceptor& start_local);

}  // namespace gpr
