// Wakes that concern threads on another node (DESIGN 4.4): what a futex call wakes, and how it is
// done in the name of a thread elsewhere.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/task.h"
#include "monitor/fragment.h"

namespace gpr {

struct FutexWakeCall {
    uint64_t address = 0;
    int32_t count = 0;
    uint32_t bitset = 0xffffffff;
    bool shared = false;  // the caller did not say FUTEX_PRIVATE_FLAG
};

// Nothing for calls that wake nobody. Those that requeue wake all: none is lost.
std::optional<FutexWakeCall> futex_wake_of(uint32_t number, const uint64_t (&args)[6]);

// In a mixed session all who wait for such a word do so at home.
bool is_shared_word(Fragment& fragment, Address word);

Task<void> wake_futex(Fragment& fragment, FutexWakeCall wake);

}  // namespace gpr
