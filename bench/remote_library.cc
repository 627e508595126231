// The part of the subjects that a split rule sends to the acceptor.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

extern "C" long bench_remote(long x) { return x + 1; }

// Waits for its turn, which a thread at home gives, and gives it back.
extern "C" void bench_remote_turns(std::atomic<uint32_t>* turn, size_t count) {
    for (size_t i = 0; i < count; i++) {
        while (turn->load(std::memory_order_acquire) == 0) {
            syscall(SYS_futex, turn, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
        }
        turn->store(0, std::memory_order_release);
        syscall(SYS_futex, turn, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
}
