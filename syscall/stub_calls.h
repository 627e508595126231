// Calls that gpr's own code in a process at an acceptor may make in addition to those of the
// program.
//
// The filters recognise that code by its address, and any program can jump there. So this list
// shows what such a program gains. Nothing on it reaches beyond the process: it is about its own
// memory, descriptors, signals, timers and threads. All other calls are judged as the program's,
// from wherever they are made.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace gpr {

struct StubCall {
    uint16_t number = 0;
    // If not -1: only with one of these values in the low half of that argument, under the mask.
    int8_t argument = -1;
    uint8_t count = 0;
    std::array<uint32_t, 5> values{};
    uint32_t mask = UINT32_MAX;
};

// Sorted by number.
std::span<const StubCall> stub_calls();
// nullptr if it is not listed.
const StubCall* find_stub_call(uint32_t number);

}  // namespace gpr
