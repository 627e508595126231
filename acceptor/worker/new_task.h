// What home has to know of a thread or process that a call here creates.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "monitor/tracee/context_raw.h"

namespace gpr::worker {

struct NewTask {
    ThreadContext context;       // the parent's
    std::vector<pid_t> set_tid;  // from clone3
    uint32_t cgroup = 0;         // for CLONE_INTO_CGROUP
};

}  // namespace gpr::worker
