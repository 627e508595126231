// Wakes that concern threads on another node (DESIGN 4.4): what a futex call wakes, and how it is
// done in the name of a thread elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/task.h"
#include "monitor/paging/fragment.h"
#include "monitor/paging/pager.h"

namespace gpr {

struct FutexWakeCall {
    uint64_t address = 0;
    int32_t count = 0;
    uint32_t bitset = 0xffffffff;
    bool shared = false;  // the caller did not say FUTEX_PRIVATE_FLAG
};

struct FutexWait {
    uint32_t call = 0;
    uint64_t address = 0;
    uint32_t expected = 0;
    bool shared = false;
};
// Of calls that wait at one word for a wake, without priority inheritance.
std::optional<FutexWait> futex_wait_of(uint32_t number, const uint64_t (&args)[6]);

// None for calls that wake nobody. Those that requeue, or wake by an operation, wake all: none is
// lost. Not of futex_requeue(2), whose words lie in memory.
std::vector<FutexWakeCall> futex_wakes_of(uint32_t number, const uint64_t (&args)[6]);

// futex_requeue(2): two struct futex_waitv at its first argument.
inline constexpr uint32_t number_futex_wake = 454, number_futex_wait = 455,
                          number_futex_requeue = 456;
struct RequeuedWords {
    struct Word {
        uint64_t value = 0, address = 0;
        uint32_t flags = 0, reserved = 0;
    };
    Word from, to;
    [[nodiscard]] FutexWakeCall wake() const;
};

// Priority inheritance: the kernel that holds the lock must know who holds and who waits.
bool is_pi_call(uint32_t number, const uint64_t (&args)[6]);
// The words that the kernel changes by itself. It gives up where they are not in memory.
std::vector<Range> words_changed_by(uint32_t number, const uint64_t (&args)[6]);
// They can be held in memory meanwhile: this long.
bool can_be_changed(Fragment& fragment, const std::vector<Range>& words);
inline constexpr std::chrono::milliseconds call_made_in{5};

// In a mixed session all who wait for such a word do so at home.
bool is_shared_word(Fragment& fragment, Address word);

Task<void> wake_futex(Fragment& fragment, FutexWakeCall wake);
// The same where nobody is there only for that: its page is held meanwhile, because the executor
// must never wait for one.
Task<void> wake_futex_held(Pager& pager, Fragment& fragment, FutexWakeCall wake);

}  // namespace gpr
