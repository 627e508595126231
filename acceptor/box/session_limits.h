// What one session may use of this host, as its administrator wants it. Plain data.
#pragma once

#include <cstdint>

namespace gpr {

struct SessionLimits {
    uint64_t memory_bytes = 0;         // including swap; 0: no limit
    uint64_t tasks = 0;                // processes and threads; 0: no limit
    uint32_t milli_cpus = 0;           // 1500: one and a half; 0: no limit
    uint64_t device_memory_bytes = 0;  // for each region of each device; 0: no limit

    [[nodiscard]] bool any() const {
        return memory_bytes != 0 || tasks != 0 || milli_cpus != 0 || device_memory_bytes != 0;
    }
};

// What is limited without a cgroup, by the kernel per user or by the worker.
struct ProcessLimits {
    uint64_t tasks = 0;         // processes and threads; 0: no limit
    uint64_t files = 0;         // descriptors of each process besides home's; 0: no limit
    uint64_t worker_bytes = 0;  // the worker's own memory; 0: no limit
    bool operator==(const ProcessLimits&) const = default;
};

inline constexpr uint64_t default_tasks = 16'384;
inline constexpr uint64_t default_files = 65'536;

// host_memory: of this host, in bytes.
ProcessLimits process_limits(const SessionLimits& limits, uint64_t host_memory);
uint64_t default_memory(uint64_t host_memory);

}  // namespace gpr
