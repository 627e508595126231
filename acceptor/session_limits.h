// What one session may use of this host, as its administrator wants it. Plain data.
#pragma once

#include <cstdint>

namespace gpr {

struct SessionLimits {
    uint64_t memory_bytes = 0;         // 0: no limit; swap is part of it
    uint64_t tasks = 0;                // processes and threads; 0: no limit
    uint32_t milli_cpus = 0;           // 1500: one and a half; 0: no limit
    uint64_t device_memory_bytes = 0;  // of each region of each device; 0: no limit

    [[nodiscard]] bool any() const {
        return memory_bytes != 0 || tasks != 0 || milli_cpus != 0 || device_memory_bytes != 0;
    }
};

}  // namespace gpr
