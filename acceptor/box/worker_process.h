// What every worker does first, right after the fork.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace gpr {

// Dies with `parent`, has a session of its own and default signals. Exits if it is too late.
void become_worker_process(pid_t parent);

// From now on this process ends, with a line in the log, when it needs more than so much memory for
// itself: a peer can have it note things without end.
void limit_own_memory(uint64_t bytes);
inline constexpr int worker_out_of_memory = 104;

}  // namespace gpr
