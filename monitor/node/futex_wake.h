// Futex wakes that concern threads on another node (docs/decisions/0016-watch-futexes.md): what a
// futex call wakes, and how that is done on behalf of a thread elsewhere.
#pragma once

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
    bool shared = false;  // the caller did not set FUTEX_PRIVATE_FLAG
};

struct FutexWait {
    uint32_t call = 0;
    uint64_t address = 0;
    uint32_t expected = 0;
    bool shared = false;
};
// For calls that wait at one word, without priority inheritance.
std::optional<FutexWait> futex_wait_of(uint32_t number, const uint64_t (&args)[6]);

// Empty for calls that wake nobody. Calls that requeue, or wake by an operation, are treated as
// waking all waiters, so that no wake is lost. Not for futex_requeue(2), whose words are in memory.
std::vector<FutexWakeCall> futex_wakes_of(uint32_t number, const uint64_t (&args)[6]);

// Calls whose first argument points to an array of struct futex_waitv: futex_waitv(2), and
// futex_requeue(2) with two.
inline constexpr uint32_t number_futex_waitv = 449, number_futex_wake = 454,
                          number_futex_wait = 455, number_futex_requeue = 456;
inline bool has_futex_array(uint32_t number) {
    return number == number_futex_waitv || number == number_futex_requeue;
}
struct FutexWord {
    uint64_t value = 0, address = 0;
    uint32_t flags = 0, reserved = 0;
};
// Empty if they cannot be read, or are too many: then the kernel refuses the call.
Task<std::vector<FutexWord>> futex_array(Pager& pager, std::shared_ptr<Fragment> fragment,
                                         uint32_t number, const uint64_t (&args)[6]);
// What futex_requeue(2) wakes or moves. words: its array, not empty.
FutexWakeCall wake_of_requeue(const std::vector<FutexWord>& words);

// Calls with priority inheritance, for which one kernel must know the holder and all waiters.
bool is_pi_call(uint32_t number, const uint64_t (&args)[6]);
// The words that the kernel itself changes. It fails if they are not in memory.
std::vector<Range> words_changed_by(uint32_t number, const uint64_t (&args)[6]);
// Holds these words in memory. Returns what paging::Supply::hold() does; 0: they cannot be held.
Task<uint64_t> hold_for_call(Pager& pager, std::shared_ptr<Fragment> fragment,
                             std::vector<Range> words);
// The same for the words that the call changes, and the time limit that the kernel reads before: a
// thread that holds words must not have to wait for a page.
Task<uint64_t> hold_for_call(Pager& pager, std::shared_ptr<Fragment> fragment, uint32_t number,
                             const uint64_t (&args)[6]);
// The thread is about to make the call: releases the words once it has had its processor for long
// enough, or sleeps in the call. tid: as this supervisor sees it. call_ends: the address behind the
// call's instruction, which the thread may execute once more.
Task<void> release_after_call(Loop& loop, Pager& pager, uint64_t hold, pid_t tid,
                              uint64_t call_ends);

// Whether the word is in shared memory. In a mixed session all its waiters wait at home.
bool is_shared_word(Fragment& fragment, Address word);

Task<void> wake_futex(Fragment& fragment, FutexWakeCall wake);
// The same for a process without a waker: holds the word's page meanwhile, because the executor
// must never wait for a page.
Task<void> wake_futex_held(Pager& pager, Fragment& fragment, FutexWakeCall wake);

}  // namespace gpr
