// What a process or thread has used on one node, and the system calls that report it: getrusage,
// times, clock_gettime, wait4, waitid. Their results are summed over the nodes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>

namespace gpr {

// Resident memory of a process, in bytes.
struct Resident {
    uint64_t anonymous = 0, file = 0, shared = 0;

    [[nodiscard]] uint64_t total() const { return anonymous + file + shared; }
};

struct Usage {
    uint64_t total_ns = 0;  // CPU time, exact
    uint64_t user_ns = 0;   // its user part, with the kernel's resolution (10 ms)
    uint64_t minor_faults = 0, major_faults = 0;
    uint64_t peak_bytes = 0;  // peak resident memory of the process
    Resident resident;        // if it was asked for

    // Adds the same process's or thread's usage on another node.
    Usage& operator+=(const Usage& other);
    // Adds the usage of a child or of an earlier image, whose peak was at another time.
    Usage& join(const Usage& other);
};

// Usage so far, ended threads included; without peak_bytes. All zero if the process is gone. pid:
// as this supervisor sees it.
Usage usage_of_process(pid_t pid);
Usage usage_of_thread(pid_t pid, pid_t tid);
// Only total_ns; this takes about a microsecond.
uint64_t cpu_time_of_process(pid_t pid);
// Adds the process's peak_bytes and resident.
void add_memory_of(pid_t pid, Usage& usage);

// A system call that reports usage.
struct UsageCall {
    enum class Of : uint8_t { process, thread, children };
    Of of = Of::process;
    pid_t id = 0;            // process or thread id; 0: the caller
    unsigned argument = 0;   // index of the argument that points to the result
    size_t size = 0;         // of the result, in bytes
    bool user_only = false;  // CPUCLOCK_VIRT
    bool memory = false;     // it reports memory, too
};
std::optional<UsageCall> usage_call(uint64_t number, const uint64_t* args);

// Adds to the result of such a call. times(2) reports the children, too.
void add_usage(uint64_t number, const UsageCall& call, std::span<std::byte> result,
               const Usage& used, const Usage& children = {});
// Adds to a struct rusage.
void add_to_rusage(std::span<std::byte> rusage, const Usage& used);

}  // namespace gpr
