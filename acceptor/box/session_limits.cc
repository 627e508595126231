#include "acceptor/box/session_limits.h"

namespace gpr {
namespace {

// Memory that a worker needs for itself, and for its bookkeeping: at most 64 bytes for each page
// that went over the link, to record who has it.
constexpr uint64_t worker_memory = 1ULL << 30;
constexpr uint64_t memory_per_bookkeeping = 4096 / 64;  // bytes for each byte

}  // namespace

uint64_t default_memory(uint64_t host_memory) { return host_memory / 4 * 3; }

ProcessLimits process_limits(const SessionLimits& limits, uint64_t host_memory) {
    ProcessLimits found;
    found.tasks = limits.tasks;
    found.files = default_files;
    const uint64_t memory = limits.memory_bytes != 0 ? limits.memory_bytes : host_memory;
    found.worker_bytes = worker_memory + memory / memory_per_bookkeeping;
    return found;
}

}  // namespace gpr
