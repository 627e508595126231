// What a session at an acceptor has counted so far, in memory that its worker shares with the
// daemon: the worker writes it now and then, the daemon reads it for metrics and `gpr ps`.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/fd.h"
#include "base/latency.h"
#include "base/result.h"
#include "monitor/node/node_counts.h"

namespace gpr {

struct SessionTally {
    uint64_t cpu_ns = 0;  // of the program's processes, including ended ones
    uint64_t threads = 0;
    uint64_t arrivals = 0;  // of threads
    uint64_t bytes_in = 0, bytes_out = 0;
    NodeCounts counts;
    LatencyHistogram fault_waits;

    SessionTally& operator+=(const SessionTally& other);
};

// A SessionTally in shared memory, mapped. Each number is written and read whole; what is read may
// have numbers of two moments.
class SharedTally {
public:
    // In new memory that is not shared yet.
    static Result<SharedTally> create();
    static Result<SharedTally> map(Fd memory);

    void write(const SessionTally& tally);
    [[nodiscard]] SessionTally read() const;
    [[nodiscard]] int fd() const { return memory_.get(); }

    SharedTally(SharedTally&& other) noexcept;
    SharedTally& operator=(SharedTally&& other) noexcept;
    ~SharedTally();

private:
    using Words = std::array<std::atomic<uint64_t>, sizeof(SessionTally) / sizeof(uint64_t)>;
    static_assert(std::atomic<uint64_t>::is_always_lock_free);
    static_assert(sizeof(Words) == sizeof(SessionTally));

    SharedTally(Fd memory, Words* words) : memory_(std::move(memory)), words_(words) {}

    Fd memory_;
    Words* words_;
};

}  // namespace gpr
