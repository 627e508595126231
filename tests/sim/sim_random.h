// Seeded randomness for the simulator: the same seed is the same run on every machine.
#pragma once

#include <cstdint>

namespace gpr::sim {

class Random {
public:
    explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 0x1234567) {}

    uint64_t next() {  // splitmix64
        uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
        return z ^ (z >> 31);
    }
    // In [low, high].
    uint64_t between(uint64_t low, uint64_t high) { return low + next() % (high - low + 1); }
    bool percent(uint64_t chance) { return next() % 100 < chance; }

private:
    uint64_t state_;
};

}  // namespace gpr::sim
