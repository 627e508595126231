// Numbers that the program, the stub and the filters agree on. Linux answers ENOSYS to both.
#pragma once

#include <cstdint>

namespace gpr {

// A shadow waits in this call. It always notifies, also when the stub itself makes it.
inline constexpr uint32_t gpr_park_number = 0x4770;

// The stub's park with these instead of a slot asks for a descriptor.
inline constexpr uint64_t gpr_park_code = 1, gpr_park_mailbox = 2, gpr_park_shared = 3;

// A program that knows gpr asks it something; ENOSYS tells it that it runs without.
inline constexpr uint32_t gpr_hypercall_number = 0x4771;

// Stub code lives at 0x5500'0000'0000: its calls are told apart by the high word of rip.
inline constexpr uint32_t stub_high_word = 0x00005500;

}  // namespace gpr
