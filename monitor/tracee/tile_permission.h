// Permission to use AMX tiles: a process asks for it with ARCH_REQ_XCOMP_PERM and keeps it until
// exec.
#pragma once

#include "base/task.h"
#include "monitor/tracee/stub_thread.h"

namespace gpr {

// stub: of any thread of that process.
Task<bool> may_use_tiles(StubThread& stub);
Task<void> ask_for_tiles(StubThread& stub);

}  // namespace gpr
