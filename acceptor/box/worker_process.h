// What every worker does first, right after the fork.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace gpr {

// Makes the process die with `parent`, start a new session and reset its signals. Exits if `parent`
// is dead already.
void become_worker_process(pid_t parent);

// From now on this process ends, with a line in the log, if it needs more memory for itself: a peer
// could otherwise make it record things without end.
void limit_own_memory(uint64_t bytes);
inline constexpr int worker_out_of_memory = 104;

}  // namespace gpr
