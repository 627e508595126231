// rseq(2) of a thread in a session. The kernel must not know about it, because it would write to
// the area whenever the thread's kernel thread on this node runs, even as a shadow. A C library
// that could register its first thread aborts if it cannot register the next one, so the program is
// told that it has registered; the CPU number in the area stays "unknown".
#pragma once

#include <cstdint>
#include <optional>

namespace gpr {

// What the program has registered; size 0: nothing.
struct RseqArea {
    uint64_t address = 0;
    uint32_t size = 0, signature = 0;
};

inline constexpr uint64_t rseq_unregister = 1;  // RSEQ_FLAG_UNREGISTER

// Returns what the kernel would answer to rseq(address, size, flags, signature), and updates the
// area.
int64_t register_rseq(RseqArea& area, const uint64_t* args);

}  // namespace gpr
