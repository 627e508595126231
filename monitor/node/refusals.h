// Calls that would make home's kernel pin pages, which could then not move. They are refused with
// an error for which programs have a fallback.
#pragma once

#include <cstdint>

namespace gpr {

// What io_uring_register is to do; whether it names the ring by an index is left out.
inline uint32_t ring_operation(uint64_t opcode) {
    constexpr uint32_t by_index = 1u << 31;  // IORING_REGISTER_USE_REGISTERED_RING
    return static_cast<uint32_t>(opcode) & ~by_index;
}

// Opcodes of io_uring_register(2) that pin the program's memory: IORING_REGISTER_BUFFERS, _BUFFERS2
// and _BUFFERS_UPDATE.
inline bool registers_buffers(uint64_t opcode) {
    const uint32_t what = ring_operation(opcode);
    return what == 0 || what == 15 || what == 16;
}

}  // namespace gpr
