// Call numbers that the stub and the filters agree on. Linux answers ENOSYS to them.
#pragma once

#include <cstdint>

namespace gpr {

// A parked thread waits in this call, which is always reported, even if the stub makes it.
inline constexpr uint32_t gpr_park_number = 0x4770;

// With one of these instead of a slot, the park call asks for a descriptor.
inline constexpr uint64_t gpr_park_code = 1, gpr_park_mailbox = 2, gpr_park_shared = 3,
                          gpr_park_content = 4;

// The stub's code is at 0x5500'0000'0000: its calls are recognised by the high word of rip.
inline constexpr uint32_t stub_high_word = 0x00005500;

}  // namespace gpr
