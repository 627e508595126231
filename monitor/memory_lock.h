// mlock and its kin, kept in the list of mappings only: pages that the kernel holds locked could
// not be taken to where they are needed, and what mlock promises about swapping does not reach a
// page on its way.
#pragma once

#include <cstdint>
#include <span>

#include "mm/address_space.h"

namespace gpr {

// Opcodes of io_uring_register(2) that pin the program's memory: IORING_REGISTER_BUFFERS, _BUFFERS2
// and _BUFFERS_UPDATE.
inline bool registers_buffers(uint64_t opcode) {
    uint32_t what =
        static_cast<uint32_t>(opcode) & ~(1u << 31);  // IORING_REGISTER_USE_REGISTERED_RING
    return what == 0 || what == 15 || what == 16;
}

// MADV_GUARD_INSTALL and _REMOVE (Linux 6.13): marks in one kernel's page tables, which do not
// travel. Refused as older kernels do, upon which programs use mprotect.
inline bool is_guard_advice(uint64_t number, const uint64_t* args) {
    constexpr uint64_t madvise = 28, guard_install = 102, guard_remove = 103;
    return number == madvise && (args[2] == guard_install || args[2] == guard_remove);
}

// What the call asks for. error: a positive errno, as Linux gives it; 0: the range is to be marked.
struct MemoryLock {
    Range range{};
    bool locked = false;
    int error = 0;
};
MemoryLock memory_lock_of(uint32_t number, std::span<const uint64_t, 6> args, AddressSpace& space);

void mark_locked(AddressSpace& space, Range range, bool locked);

}  // namespace gpr
