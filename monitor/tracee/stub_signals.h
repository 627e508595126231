// Signals that meet a thread in the stub, whose registers there are not the program's.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace gpr {

// The thread is in the stop before the delivery of one that an instruction of the stub has caused.
// Nothing that is well does: the program has written over the stub's memory, or unmapped it. Made
// to wait, it would come again from the same instruction, for ever.
bool is_fault_in_stub(pid_t tid);

// Signals that would end the process as it stands: bit n-1 is signal n. caught: those for which it
// has handlers that the kernel may not know of yet.
uint64_t deadly_signals(pid_t pid, uint64_t caught);

}  // namespace gpr
