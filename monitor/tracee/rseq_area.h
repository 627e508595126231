// rseq(2) of a thread in a session: the kernel must not know of it, for it would write to the area
// whenever the thread's other half runs. A C library that has registered its first thread takes a
// refusal for the next one for the end of the world, so it is told that it has registered; the
// number of the processor in the area stays "not known".
#pragma once

#include <cstdint>
#include <optional>

namespace gpr {

// What the program has registered; nothing if it has no size.
struct RseqArea {
    uint64_t address = 0;
    uint32_t size = 0, signature = 0;
};

inline constexpr uint64_t rseq_unregister = 1;  // RSEQ_FLAG_UNREGISTER

// The kernel's answer to rseq(address, size, flags, signature), and what it would know then.
int64_t register_rseq(RseqArea& area, const uint64_t* args);

}  // namespace gpr
