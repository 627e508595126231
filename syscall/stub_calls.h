// What gpr's own code in a process at an acceptor calls there beyond what the program may call.
//
// The filters tell that code by where it lies, and any program can jump there. So this list says
// what such a program gains, and nothing on it leads out of the process: memory, descriptors,
// signals, timers and threads of its own. All else is the program's, wherever it is called from.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace gpr {

struct StubCall {
    uint16_t number = 0;
    // If it is not -1: only with one of these in the low half of that argument, under the mask.
    int8_t argument = -1;
    uint8_t count = 0;
    std::array<uint32_t, 5> values{};
    uint32_t mask = UINT32_MAX;
};

// In the order of their numbers.
std::span<const StubCall> stub_calls();
// nullptr: not one of them.
const StubCall* find_stub_call(uint32_t number);

}  // namespace gpr
