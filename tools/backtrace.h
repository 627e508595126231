// Where the threads of a process of a session stand: their calls, with symbols, from registers and
// memory that its monitor tells, and the files of this host.
#pragma once

#include <sys/types.h>

#include <map>
#include <vector>

#include "base/result.h"
#include "tools/process_symbols.h"
#include "tools/sessions.h"

namespace gpr {

// The innermost first. A thread that waits has told only where: what is found ends where a frame
// needs more registers than that.
using Backtraces = std::map<pid_t, std::vector<CallFrame>>;
Result<Backtraces> backtraces_of(const ListedSession& session, pid_t pid);

}  // namespace gpr
