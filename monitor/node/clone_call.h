// The program's clone3(2), made by its thread in the stub at home.
#pragma once

#include <linux/sched.h>
#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/task.h"
#include "monitor/tracee/stub_thread.h"

namespace gpr {

// set_tid: the ids for the new thread or process, innermost pid namespace first; empty: any.
Task<int64_t> clone_in_stub(StubThread& stub, clone_args args, std::vector<pid_t> set_tid);

}  // namespace gpr
