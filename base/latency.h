// How long something took, counted: a histogram whose buckets are the same everywhere, so that
// those of several nodes can be added.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gpr {

struct LatencyHistogram {
    // The upper bounds in ns, each included in its bucket; what is above the last has one more.
    static constexpr std::array<uint64_t, 16> bounds_ns{
        10'000,      25'000,        50'000,        100'000,       250'000,    500'000,
        1'000'000,   2'500'000,     5'000'000,     10'000'000,    25'000'000, 100'000'000,
        250'000'000, 1'000'000'000, 2'500'000'000, 10'000'000'000};

    std::array<uint64_t, bounds_ns.size() + 1> counts{};
    uint64_t sum_ns = 0;

    void note(uint64_t ns) {
        size_t i = 0;
        while (i < bounds_ns.size() && ns > bounds_ns[i]) i++;
        counts[i]++;
        sum_ns += ns;
    }

    // 0 if nothing was noted.
    [[nodiscard]] uint64_t mean_ns() const {
        uint64_t count = 0;
        for (uint64_t each : counts) count += each;
        return count == 0 ? 0 : sum_ns / count;
    }

    LatencyHistogram& operator+=(const LatencyHistogram& other) {
        for (size_t i = 0; i < counts.size(); i++) counts[i] += other.counts[i];
        sum_ns += other.sum_ns;
        return *this;
    }
};

}  // namespace gpr
