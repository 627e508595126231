// What home has to know of a thread or process that a call here begins.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "monitor/tracee/context_raw.h"

namespace gpr::worker {

struct NewTask {
    ThreadContext context;       // its parent's
    std::vector<pid_t> set_tid;  // of clone3
    uint32_t cgroup = 0;         // of CLONE_INTO_CGROUP
};

}  // namespace gpr::worker
