// Numbers that the stub and the filters agree on. Linux answers ENOSYS.
#pragma once

#include <cstdint>

namespace gpr {

// A shadow waits in this call. It always notifies, also when the stub itself makes it.
inline constexpr uint32_t gpr_park_number = 0x4770;

// The stub's park with these instead of a slot asks for a descriptor.
inline constexpr uint64_t gpr_park_code = 1, gpr_park_mailbox = 2, gpr_park_shared = 3;

// Stub code lives at 0x5500'0000'0000: its calls are told apart by the high word of rip.
inline constexpr uint32_t stub_high_word = 0x00005500;

}  // namespace gpr
