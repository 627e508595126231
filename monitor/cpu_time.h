// What a process or a thread has used of the CPU on one node, and the system calls that tell it:
// getrusage, times, clock_gettime, wait4, waitid. Their results are summed over the nodes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>

namespace gpr {

struct CpuTime {
    uint64_t total_ns = 0;  // exact
    uint64_t user_ns = 0;   // the user part, in the kernel's ticks (10 ms)

    CpuTime& operator+=(const CpuTime& other) {
        total_ns += other.total_ns;
        user_ns += other.user_ns;
        return *this;
    }
};

// So far, with its ended threads. Zero where the process is gone. pid: as this supervisor names it.
CpuTime cpu_time_of(pid_t pid);
CpuTime cpu_time_of_thread(pid_t pid, pid_t tid);

// A call that tells what somebody has used.
struct CpuTimeCall {
    enum class Of : uint8_t { process, thread, children };
    Of of = Of::process;
    pid_t id = 0;            // of the process or thread; 0: the caller
    unsigned argument = 0;   // the one that points to the result
    size_t size = 0;         // of that, in bytes
    bool user_only = false;  // CPUCLOCK_VIRT
};
std::optional<CpuTimeCall> cpu_time_call(uint64_t number, const uint64_t* args);

// Adds to the result of such a call; times tells of the children, too.
void add_cpu_time(uint64_t number, const CpuTimeCall& call, std::span<std::byte> result,
                  const CpuTime& used, const CpuTime& children = {});
// A struct rusage.
void add_usage(std::span<std::byte> rusage, const CpuTime& used);

}  // namespace gpr
