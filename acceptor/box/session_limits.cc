#include "acceptor/box/session_limits.h"

namespace gpr {
namespace {

// Memory that a worker needs for itself, and for its bookkeeping: at most 64 bytes for each page
// that went over the link, to record who has it.
constexpr uint64_t worker_base = 1ULL << 30;
constexpr uint64_t page_over_books = 4096 / 64;

}  // namespace

uint64_t default_memory(uint64_t host_memory) { return host_memory / 4 * 3; }

ProcessLimits process_limits(const SessionLimits& limits, uint64_t host_memory) {
    ProcessLimits found;
    found.tasks = limits.tasks;
    found.files = default_files;
    const uint64_t memory = limits.memory_bytes != 0 ? limits.memory_bytes : host_memory;
    found.worker_bytes = worker_base + memory / page_over_books;
    return found;
}

}  // namespace gpr
