// Leave to use the tiles of AMX: a process asks for it (ARCH_REQ_XCOMP_PERM), and keeps it till it
// executes another program.
#pragma once

#include "base/task.h"
#include "monitor/tracee/stub_thread.h"

namespace gpr {

// stub: of a thread of that process.
Task<bool> may_use_tiles(StubThread& stub);
Task<void> ask_for_tiles(StubThread& stub);

}  // namespace gpr
