#include "monitor/node/futex_wake.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <climits>

#include "base/log.h"
#include "monitor/node/thread_progress.h"

namespace gpr {

namespace {
// Missing from older headers.
constexpr uint32_t futex2_private = 128;
constexpr uint32_t lock_pi2 = 13;  // FUTEX_LOCK_PI2, Linux 5.14
constexpr uint64_t word_size = 4;
constexpr uint64_t call_bytes = 2;  // of a `syscall` instruction
// What a call needs of a processor, at most, until the kernel has changed its words.
constexpr std::chrono::milliseconds cpu_until_changed{1};

uint32_t command_of(const uint64_t (&args)[6]) {
    return static_cast<uint32_t>(args[1]) & static_cast<uint32_t>(FUTEX_CMD_MASK);
}

bool can_be_held(Fragment& fragment, Range range) {
    const Mapping* m = fragment.space.find(range.begin);
    return m && m->range.end >= range.end && (m->prot & PROT_WRITE) && !m->shared;
}

// What the kernel reads before it looks at the words of a call that waits for a lock.
Range time_limit_of(uint32_t number, const uint64_t (&args)[6]) {
    const uint32_t command = command_of(args);
    const bool waits =
        command == FUTEX_LOCK_PI || command == lock_pi2 || command == FUTEX_WAIT_REQUEUE_PI;
    if (number != SYS_futex || !waits || args[3] == 0) return {};
    return {{args[3]}, {args[3] + sizeof(timespec)}};
}

}  // namespace

std::optional<FutexWait> futex_wait_of(uint32_t number, const uint64_t (&args)[6]) {
    if (number == number_futex_wait) {
        return FutexWait{number, args[0], static_cast<uint32_t>(args[1]),
                         !(args[3] & futex2_private)};
    }
    if (number != SYS_futex) return std::nullopt;
    switch (command_of(args)) {
        case FUTEX_WAIT:
        case FUTEX_WAIT_BITSET:
            return FutexWait{number, args[0], static_cast<uint32_t>(args[2]),
                             !(args[1] & FUTEX_PRIVATE_FLAG)};
        default: return std::nullopt;
    }
}

std::vector<FutexWakeCall> futex_wakes_of(uint32_t number, const uint64_t (&args)[6]) {
    FutexWakeCall wake;
    wake.address = args[0];
    if (number == number_futex_wake) {
        wake.bitset = static_cast<uint32_t>(args[1]);
        wake.count = static_cast<int32_t>(args[2]);
        wake.shared = !(args[3] & futex2_private);
        return {wake};
    }
    if (number != SYS_futex) return {};
    wake.shared = !(args[1] & FUTEX_PRIVATE_FLAG);
    wake.count = static_cast<int32_t>(args[2]);
    switch (command_of(args)) {
        case FUTEX_WAKE: return {wake};
        case FUTEX_WAKE_BITSET: wake.bitset = static_cast<uint32_t>(args[5]); return {wake};
        case FUTEX_REQUEUE:
        case FUTEX_CMP_REQUEUE:
        case FUTEX_CMP_REQUEUE_PI: wake.count = INT_MAX; return {wake};
        case FUTEX_WAKE_OP: {
            wake.count = INT_MAX;
            FutexWakeCall second = wake;
            second.address = args[4];
            return {wake, second};
        }
        default: return {};
    }
}

FutexWakeCall wake_of_requeue(const std::vector<FutexWord>& words) {
    const FutexWord& from = words.front();
    return {from.address, INT_MAX, 0xffffffff, !(from.flags & futex2_private)};
}

bool is_pi_call(uint32_t number, const uint64_t (&args)[6]) {
    if (number != SYS_futex) return false;
    switch (command_of(args)) {
        case FUTEX_LOCK_PI:
        case FUTEX_UNLOCK_PI:
        case FUTEX_TRYLOCK_PI:
        case FUTEX_WAIT_REQUEUE_PI:
        case FUTEX_CMP_REQUEUE_PI:
        case lock_pi2: return true;
        default: return false;
    }
}

std::vector<Range> words_changed_by(uint32_t number, const uint64_t (&args)[6]) {
    if (number != SYS_futex) return {};
    Range first{{args[0]}, {args[0] + word_size}}, second{{args[4]}, {args[4] + word_size}};
    switch (command_of(args)) {
        case FUTEX_WAKE_OP: return {second};
        case FUTEX_WAIT_REQUEUE_PI:
        case FUTEX_CMP_REQUEUE_PI: return {first, second};
        default: return is_pi_call(number, args) ? std::vector{first} : std::vector<Range>{};
    }
}

Task<std::vector<FutexWord>> futex_array(Pager& pager, std::shared_ptr<Fragment> fragment,
                                         uint32_t number, const uint64_t (&args)[6]) {
    constexpr uint64_t most = 128;  // FUTEX_WAITV_MAX
    const Address at{args[0]};
    const uint64_t count = number == number_futex_requeue ? 2 : static_cast<uint32_t>(args[1]);
    std::vector<FutexWord> words;
    if (count > most) co_return words;
    words.resize(count);
    const bool read =
        co_await pager.memory.read(*fragment, at, std::as_writable_bytes(std::span(words)));
    if (!read) words.clear();
    co_return words;
}

Task<uint64_t> hold_for_call(Pager& pager, std::shared_ptr<Fragment> fragment,
                             std::vector<Range> words) {
    auto is_to_be_held = [&](Range word) { return can_be_held(*fragment, word); };
    if (words.empty() || !std::ranges::all_of(words, is_to_be_held)) co_return 0;
    co_return co_await pager.supply.hold(*fragment, std::move(words), Access::write);
}

Task<uint64_t> hold_for_call(Pager& pager, std::shared_ptr<Fragment> fragment, uint32_t number,
                             const uint64_t (&args)[6]) {
    std::vector<Range> words = words_changed_by(number, args);
    const Range limit = time_limit_of(number, args);
    if (!limit.empty() && can_be_held(*fragment, limit)) words.push_back(limit);
    co_return co_await hold_for_call(pager, std::move(fragment), std::move(words));
}

Task<void> release_after_call(Loop& loop, Pager& pager, uint64_t hold, pid_t tid,
                              uint64_t call_ends) {
    if (hold == 0) co_return;
    const Progress enough{.on_processor = cpu_until_changed, .begins_at = call_ends - call_bytes};
    co_await thread_gets_on(loop, tid, enough);
    pager.supply.release(hold);
}

bool is_shared_word(Fragment& fragment, Address word) {
    Mapping* m = fragment.space.find(word);
    return m && m->shared;
}

Task<void> wake_futex(Fragment& fragment, FutexWakeCall wake) {
    if (!fragment.has_helpers()) co_return;
    spdlog::trace("futex: wakes {} at {:#x} bits {:#x} for another node", wake.count, wake.address,
                  wake.bitset);
    StubThread& waker = fragment.waker() ? *fragment.waker() : fragment.executor();
    uint64_t operation = FUTEX_WAKE_BITSET | (wake.shared ? 0 : FUTEX_PRIVATE_FLAG);
    co_await waker.call(SYS_futex, wake.address, operation, static_cast<uint64_t>(wake.count), 0, 0,
                        wake.bitset);
}

Task<void> wake_futex_held(Pager& pager, Fragment& fragment, FutexWakeCall wake) {
    uint64_t hold = 0;
    if (!fragment.waker()) {
        std::vector<Range> word{{{wake.address}, {wake.address + word_size}}};
        hold = co_await pager.supply.hold(fragment, std::move(word), Access::write);
        if (hold == 0) co_return;
    }
    co_await wake_futex(fragment, wake);
    pager.supply.release(hold);
}

}  // namespace gpr
