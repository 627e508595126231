// What a process has registered for with membarrier(2). Children inherit it; exec resets it.
#pragma once

#include <cstdint>

#include "base/task.h"
#include "monitor/tracee/stub_thread.h"

namespace gpr {

// One bit for each MEMBARRIER_CMD_REGISTER_* command that the process has made. stub: of any thread
// of that process.
Task<uint32_t> registered_barriers(StubThread& stub);
Task<void> register_barriers(StubThread& stub, uint32_t commands);

}  // namespace gpr
