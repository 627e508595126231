// Which ioctls may ask a driver to pin memory of the program.
// docs/decisions/0070-memory-for-devices.md
#pragma once

#include <asm/ioctl.h>

#include <cstdint>

namespace gpr {

// Whether a request gives the driver enough to name memory with: an address and a length, 16 bytes.
inline constexpr uint32_t gives_argument = uint32_t{_IOC_WRITE} << _IOC_DIRSHIFT;
inline constexpr uint32_t names_memory = (_IOC_SIZEMASK & ~15U) << _IOC_SIZESHIFT;
constexpr bool may_name_memory(uint64_t command) {
    return (command & gives_argument) != 0 && (command & names_memory) != 0;
}

}  // namespace gpr
