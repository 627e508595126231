// The register state of a program thread between two of its instructions.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/hostile_memory.h"
#include "base/result.h"

namespace gpr {

// A system call that a supervisor's stop has interrupted, and that begins again wherever the thread
// continues. If a signal comes before that, the call has to end as if the signal had interrupted
// it.
struct SuspendedCall {
    uint64_t at = 0;  // its instruction
    uint64_t number = 0;
    long code = 0;          // with which the kernel ended it (512..516); 0: no call
    bool reported = false;  // its supervisor has seen it begin again
};

struct ThreadContext {
    user_regs_struct regs{};        // with fs_base and gs_base
    std::vector<std::byte> xstate;  // standard (not compacted) XSAVE layout
    uint64_t signal_mask = 0;
    SuspendedCall suspended;  // which these registers begin again
};

// The thread must be in a ptrace stop.
Result<ThreadContext> capture_context(pid_t tid);
Result<void> apply_context(pid_t tid, const ThreadContext& context);

// Writes a signal frame from which rt_sigreturn restores the context, except fs and gs. frame: our
// mapping of the memory; frame_address: its address in the program, 64-byte aligned. Returns the
// number of bytes used, or 0 if the memory is too small.
size_t write_sigreturn_frame(const ThreadContext& context, HostileMemory frame,
                             uint64_t frame_address);

}  // namespace gpr
