// Calls that change what each node's kernel keeps about a process, other than its address space.
// The node that makes one tells the others, which make it in their fragment.
#pragma once

#include <linux/membarrier.h>
#include <sys/syscall.h>

#include <cstdint>

#include "monitor/tracee/extended_state.h"

namespace gpr {

// args: of the call, at least two.
inline bool is_mirrored_call(uint64_t number, const uint64_t* args) {
    constexpr uint64_t registrations = MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED |
                                       MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED |
                                       MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE |
                                       MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ;
    if (number == SYS_membarrier) return args[0] & registrations;
    return number == SYS_arch_prctl && asks_for_state(number, args);
}

}  // namespace gpr
