// What a session at an acceptor has counted so far, in memory that its worker shares with the
// daemon: the worker writes it now and then, the daemon reads it for metrics and `gpr ps`.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/fd.h"
#include "base/latency.h"
#include "base/result.h"

namespace gpr {

struct SessionTally {
    using Count = std::atomic<uint64_t>;

    Count cpu_ns{0};  // of the program's processes, including ended ones
    Count threads{0};
    Count faults{0}, pages_in{0}, pages_out{0};
    Count calls_home{0}, calls_native{0}, calls_fd_owner{0}, calls_by_rule{0};
    Count arrivals{0};  // of threads
    Count bytes_in{0}, bytes_out{0};
    std::array<Count, LatencyHistogram::bounds_ns.size() + 1> fault_waits{};
    Count fault_waits_sum_ns{0};
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// A SessionTally in shared memory, mapped.
class SharedTally {
public:
    // In new memory that is not shared yet.
    static Result<SharedTally> create();
    static Result<SharedTally> map(Fd memory);

    [[nodiscard]] SessionTally& operator*() const { return *tally_; }
    [[nodiscard]] SessionTally* operator->() const { return tally_; }
    [[nodiscard]] int fd() const { return memory_.get(); }

    SharedTally(SharedTally&& other) noexcept;
    SharedTally& operator=(SharedTally&& other) noexcept;
    ~SharedTally();

private:
    SharedTally(Fd memory, SessionTally* tally) : memory_(std::move(memory)), tally_(tally) {}

    Fd memory_;
    SessionTally* tally_;
};

}  // namespace gpr
