// A thread's NUMA memory policy (set_mempolicy(2)) as set on the node where it runs. The kernel
// passes it on to children and across exec; when gpr recreates those on another node it must set
// the policy again.
#pragma once

#include <sys/syscall.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/address.h"
#include "monitor/tracee/stub_thread.h"

namespace gpr {

// The mode with its flags, then the set of NUMA nodes, 64 to a word. Empty: none has been set.
using MemoryPolicy = std::vector<uint64_t>;

inline constexpr uint64_t most_memory_nodes = 1024;  // the maximum of an x86-64 kernel

// How many NUMA nodes the set covers that the call points to: the kernel uses one bit less than the
// argument says, and refuses more than a page of bits (mm/mempolicy.c, get_nodes).
inline constexpr uint64_t most_nodes_told = page_size * 8 + 1;
inline uint64_t nodes_told(uint64_t max_node) {
    return max_node == 0 || max_node > most_nodes_told ? 0 : max_node - 1;
}
inline bool has_only_known(std::span<const uint64_t> set) {
    constexpr size_t known = most_memory_nodes / 64;
    if (set.size() <= known) return true;
    auto unknown = set.subspan(known);
    return std::ranges::all_of(unknown, [](uint64_t word) { return word == 0; });
}

template <class Words>
MemoryPolicy memory_policy_of(const Words& words) {
    MemoryPolicy policy;
    for (uint64_t word : words) {
        if (policy.size() <= most_memory_nodes / 64) policy.push_back(word);
    }
    return policy;
}

// The thread must be in its stub. Returns the kernel's result.
inline Task<int64_t> set_memory_policy(StubThread& stub, MemoryPolicy policy) {
    if (policy.empty()) co_return 0;
    auto guard = co_await stub.lock();
    auto nodes = std::span(policy).subspan(1);
    stub.scratch().write(0, std::as_bytes(nodes));
    const uint64_t at = nodes.empty() ? 0 : stub.scratch_address().value;
    const uint64_t max_node = nodes.empty() ? 0 : nodes.size() * 64 + 1;
    std::vector<Call> calls{Call{SYS_set_mempolicy, {policy[0], at, max_node}, 0}};
    co_await stub.run_locked(calls);
    co_return calls[0].result;
}

}  // namespace gpr
