// Requests of ptrace(2) that read or write what belongs to a tracee in a stop. They are made for
// its tracer, whose memory they use.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/address.h"
#include "base/task.h"

namespace gpr::ptrace {

// The arguments of ptrace(2), but for the tracee.
struct Request {
    uint64_t kind = 0;  // PTRACE_*
    uint64_t address = 0;
    uint64_t data = 0;
};

class TracersMemory {
public:
    TracersMemory() = default;
    TracersMemory(const TracersMemory&) = delete;
    TracersMemory& operator=(const TracersMemory&) = delete;
    virtual ~TracersMemory() = default;

    // All or nothing.
    virtual Task<bool> read(Address from, std::span<std::byte> bytes) = 0;
    virtual Task<bool> write(Address to, std::span<const std::byte> bytes) = 0;
};

// Returns what the system call does: a value, or a negative error. A request that is not known
// fails with EIO, as in the kernel.
Task<int64_t> make_data_request(pid_t tracee, Request request, TracersMemory& memory);

}  // namespace gpr::ptrace
