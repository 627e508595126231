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

// A process as its session tells it.
struct StandingProcess {
    pid_t pid;
    nlohmann::json mappings, registers;  // the answers
};
// Threads that compute are stopped for a moment.
Result<StandingProcess> standing_process(const ListedSession& session, pid_t pid);

// The innermost first. A thread that waits has told only where: what is found ends where a frame
// needs more registers than that.
using Backtraces = std::map<pid_t, std::vector<CallFrame>>;
// Reads files that the process has mapped: see ProcessSymbols::read_files_as.
Result<Backtraces> backtraces_of(const ListedSession& session, const StandingProcess& process);

}  // namespace gpr
