// What a process has registered for with membarrier(2). Its children have it, an image has not.
#pragma once

#include <cstdint>

#include "base/task.h"
#include "monitor/tracee/stub_thread.h"

namespace gpr {

// The commands that have registered it, each of them a bit. stub: of a thread of that process.
Task<uint32_t> registered_barriers(StubThread& stub);
Task<void> register_barriers(StubThread& stub, uint32_t commands);

}  // namespace gpr
