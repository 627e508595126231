// What a process or a thread has used on one node, and the system calls that tell it: getrusage,
// times, clock_gettime, wait4, waitid. Their results are summed over the nodes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>

namespace gpr {

// Memory of a process that is resident now, in bytes.
struct Resident {
    uint64_t anonymous = 0, file = 0, shared = 0;

    [[nodiscard]] uint64_t total() const { return anonymous + file + shared; }
};

struct Usage {
    uint64_t total_ns = 0;  // of the CPU, exact
    uint64_t user_ns = 0;   // the user part, in the kernel's ticks (10 ms)
    uint64_t minor_faults = 0, major_faults = 0;
    uint64_t peak_bytes = 0;  // the most that was resident of the process
    Resident resident;        // where it is asked for

    // The same process or thread on another node.
    Usage& operator+=(const Usage& other);
    // Another image of it, or a child of its: the peaks were at different times.
    Usage& join(const Usage& other);
};

// So far, with its ended threads; without peak_bytes. Zero where the process is gone. pid: as this
// supervisor names it.
Usage usage_of_process(pid_t pid);
Usage usage_of_thread(pid_t pid, pid_t tid);
// Of the process: peak_bytes and resident.
void add_memory_of(pid_t pid, Usage& usage);

// A call that tells what somebody has used.
struct UsageCall {
    enum class Of : uint8_t { process, thread, children };
    Of of = Of::process;
    pid_t id = 0;            // of the process or thread; 0: the caller
    unsigned argument = 0;   // the one that points to the result
    size_t size = 0;         // of that, in bytes
    bool user_only = false;  // CPUCLOCK_VIRT
    bool memory = false;     // it tells of that, too
};
std::optional<UsageCall> usage_call(uint64_t number, const uint64_t* args);

// Adds to the result of such a call; times tells of the children, too.
void add_usage(uint64_t number, const UsageCall& call, std::span<std::byte> result,
               const Usage& used, const Usage& children = {});
// A struct rusage.
void add_to_rusage(std::span<std::byte> rusage, const Usage& used);

}  // namespace gpr
