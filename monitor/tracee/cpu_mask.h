// Processors that a program has chosen for a thread, by the numbers that it uses for them: the
// bytes that sched_setaffinity(2) is given. Each node uses those of them that it has.
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

using CpuMask = std::vector<uint8_t>;  // empty: none have been chosen

inline constexpr size_t largest_cpu_mask = 1024;  // bytes; the kernel reads no more (NR_CPUS)

// 0, or the kernel's error: EINVAL where this node has none of them.
inline int set_cpu_mask(pid_t tid, const CpuMask& mask) {
    auto* set = reinterpret_cast<const cpu_set_t*>(mask.data());
    return sched_setaffinity(tid, mask.size(), set) == 0 ? 0 : errno;
}

// What the kernel here lets it use; empty: it has ended.
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
