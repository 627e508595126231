// Signals that reach a thread in the stub, whose registers are not the program's.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace gpr {

// The thread is in the stop before the delivery of a signal that an instruction of the stub has
// raised. That means that the program has overwritten or unmapped the stub's memory. Such a signal
// must not be deferred: the instruction would raise it again without end.
bool is_fault_in_stub(pid_t tid);

// Signals that would kill the process now: bit n-1 is signal n. caught: signals for which the
// program has handlers that this kernel may not know of yet.
uint64_t deadly_signals(pid_t pid, uint64_t caught);

}  // namespace gpr
