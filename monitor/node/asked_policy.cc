#include "monitor/node/asked_policy.h"

#include <algorithm>
#include <span>

#include "monitor/paging/pager.h"

namespace gpr {

Task<MemoryPolicy> asked_policy(Pager& pager, std::shared_ptr<Fragment> fragment, uint64_t mode,
                                uint64_t at, uint64_t max_node) {
    const uint64_t told = at == 0 ? 0 : nodes_told(max_node);
    MemoryPolicy policy(1 + (told + 63) / 64);
    policy[0] = mode & UINT32_MAX;
    auto nodes = std::span(policy).subspan(1);
    auto bytes = std::as_writable_bytes(nodes);
    if (!nodes.empty() && !co_await pager.memory.read(*fragment, {at}, bytes))
        co_return MemoryPolicy{};
    if (told % 64 != 0) nodes.back() &= (uint64_t{1} << told % 64) - 1;
    if (max_node > most_nodes_told || !has_only_known(nodes)) co_return MemoryPolicy{};
    policy.resize(std::min(policy.size(), 1 + most_memory_nodes / 64));
    co_return policy;
}

}  // namespace gpr
