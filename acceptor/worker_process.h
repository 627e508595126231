// What every worker does first, right after the fork.
#pragma once

#include <sys/types.h>

namespace gpr {

// Dies with `parent`, has a session of its own and default signals. Exits if it is too late.
void become_worker_process(pid_t parent);

}  // namespace gpr
