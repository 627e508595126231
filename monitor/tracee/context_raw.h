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

struct ThreadContext {
    user_regs_struct regs{};        // with fs_base and gs_base
    std::vector<std::byte> xstate;  // standard (not compacted) XSAVE layout
    uint64_t signal_mask = 0;
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
