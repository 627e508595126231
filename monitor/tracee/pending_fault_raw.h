// Whether what a stopped thread did has failed already.
#pragma once

#include <sys/types.h>

namespace gpr {

// The thread is in a ptrace stop, and a signal that its last instruction caused is still to come.
// It must come where it was caused: elsewhere the instruction is repeated, and causes its own.
bool has_fault_pending(pid_t tid);

}  // namespace gpr
