#include "monitor/futex_wake.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <climits>

namespace gpr {

namespace {
// futex2's calls (Linux 6.7); the numbers are missing from older headers.
constexpr uint32_t number_futex_wake = 454, number_futex_requeue = 456;
constexpr uint32_t futex2_private = 128;
}  // namespace

std::optional<FutexWakeCall> futex_wake_of(uint32_t number, const uint64_t (&args)[6]) {
    FutexWakeCall wake;
    wake.address = args[0];
    if (number == number_futex_wake) {
        wake.bitset = static_cast<uint32_t>(args[1]);
        wake.count = static_cast<int32_t>(args[2]);
        wake.shared = !(args[3] & futex2_private);
        return wake;
    }
    if (number == number_futex_requeue) return std::nullopt;  // its addresses lie in memory
    if (number != SYS_futex) return std::nullopt;
    auto operation = static_cast<uint32_t>(args[1]);
    wake.shared = !(operation & FUTEX_PRIVATE_FLAG);
    wake.count = static_cast<int32_t>(args[2]);
    switch (operation & static_cast<uint32_t>(FUTEX_CMD_MASK)) {
        case FUTEX_WAKE: return wake;
        case FUTEX_WAKE_BITSET: wake.bitset = static_cast<uint32_t>(args[5]); return wake;
        case FUTEX_REQUEUE:
        case FUTEX_CMP_REQUEUE:
        case FUTEX_CMP_REQUEUE_PI:
        case FUTEX_WAKE_OP: wake.count = INT_MAX; return wake;
        default: return std::nullopt;
    }
}

bool is_shared_word(Fragment& fragment, Address word) {
    Mapping* m = fragment.space.find(word);
    return m && m->shared;
}

Task<void> wake_futex(Fragment& fragment, FutexWakeCall wake) {
    if (!fragment.waker()) co_return;
    uint64_t operation = FUTEX_WAKE_BITSET | (wake.shared ? 0 : FUTEX_PRIVATE_FLAG);
    co_await fragment.waker()->call(SYS_futex, wake.address, operation,
                                    static_cast<uint64_t>(wake.count), 0, 0, wake.bitset);
}

}  // namespace gpr
