// The NUMA memory policy that set_mempolicy(2) and mbind(2) ask for, read from the program.
#pragma once

#include <cstdint>
#include <memory>

#include "base/task.h"
#include "monitor/tracee/memory_policy.h"

namespace gpr {

class Fragment;
class Pager;

// at: of the set of nodes, or 0; max_node: its size in bits, as the calls count it. Empty if the
// set cannot be read or no kernel has such nodes: the call will fail.
Task<MemoryPolicy> asked_policy(Pager& pager, std::shared_ptr<Fragment> fragment, uint64_t mode,
                                uint64_t at, uint64_t max_node);

}  // namespace gpr
