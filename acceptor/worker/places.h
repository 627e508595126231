// Places in an address space that a mapping can have.
#pragma once

#include <cstdint>

#include "mm/page_protocol.h"
#include "monitor/tracee/reserved_range.h"

namespace gpr::worker {

inline constexpr int no_room = 4096;  // no errno: our arena has none, but home may
inline constexpr Range reserved = reserved_range;

constexpr bool sound(uint64_t address, uint64_t size) {
    return address % page_size == 0 && size != 0 && size <= address_limit &&
           address <= address_limit - size;
}

}  // namespace gpr::worker
