// `gpr attach`: puts a running process into a session.
#pragma once

#include <sys/types.h>

#include <functional>

#include "monitor/launch/run.h"

namespace gpr {

// Returns when the session is over: 0, or 125 with a message on stderr. A process that cannot be
// attached runs on unchanged. is_attached is called when the process goes on in its session, with
// the descriptor to which this writes messages for the user.
int run_attach(const ExecOptions& options, pid_t pid, const StartLocalAcceptor& start_local,
               const std::function<void(int messages)>& is_attached);

}  // namespace gpr
