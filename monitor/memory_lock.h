// mlock and its kin, kept in the list of mappings only: pages that the kernel holds locked could
// not be taken to where they are needed, and what mlock promises about swapping does not reach a
// page on its way.
#pragma once

#include <cstdint>
#include <span>

#include "mm/address_space.h"

namespace gpr {

// What the call asks for. error: a positive errno, as Linux gives it; 0: the range is to be marked.
struct MemoryLock {
    Range range{};
    bool locked = false;
    int error = 0;
};
MemoryLock memory_lock_of(uint32_t number, std::span<const uint64_t, 6> args, AddressSpace& space);

void mark_locked(AddressSpace& space, Range range, bool locked);

}  // namespace gpr
