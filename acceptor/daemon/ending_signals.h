// The signals that end an acceptor, or tell of a worker's end.
#pragma once

#include "base/fd.h"
#include "base/result.h"

namespace gpr {

// A signalfd for SIGTERM, SIGINT, SIGCHLD and, unless under nohup, SIGHUP. Ignores SIGPIPE.
Result<Fd> catch_ending_signals();

}  // namespace gpr
