// The CPU affinity that a program chose for a thread, in the program's own CPU numbers: the bytes
// given to sched_setaffinity(2). Each node applies those CPUs that it has.
#pragma once

#include <sched.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gpr {

using CpuMask = std::vector<uint8_t>;  // empty: the program has chosen none

inline constexpr size_t largest_cpu_mask = 1024;  // bytes; the kernel reads no more (NR_CPUS)

// Returns 0 or the kernel's error: EINVAL if this node has none of the CPUs.
inline int set_cpu_mask(pid_t tid, const CpuMask& mask) {
    auto* set = reinterpret_cast<const cpu_set_t*>(mask.data());
    return sched_setaffinity(tid, mask.size(), set) == 0 ? 0 : errno;
}

// What the kernel allows now on this node; empty if the thread has ended.
inline CpuMask cpu_mask_now(pid_t tid) {
    CpuMask mask(largest_cpu_mask);
    long bytes = syscall(SYS_sched_getaffinity, tid, mask.size(), mask.data());
    mask.resize(bytes > 0 ? static_cast<size_t>(bytes) : 0);
    return mask;
}

template <class Bytes>
CpuMask cpu_mask_of(const Bytes& bytes) {
    size_t size = bytes.size() < largest_cpu_mask ? bytes.size() : largest_cpu_mask;
    if (size == 0) return {};
    auto* begin = reinterpret_cast<const uint8_t*>(&*bytes.begin());
    return {begin, begin + size};
}

}  // namespace gpr
