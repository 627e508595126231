// clone3(2) of the program, made by its thread in the stub at home.
#pragma once

#include <linux/sched.h>
#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/task.h"
#include "monitor/tracee/stub_thread.h"

namespace gpr {

// set_tid: the ids that it is to have, in its own namespace of ids first; empty: any.
Task<int64_t> clone_in_stub(StubThread& stub, clone_args args, std::vector<pid_t> set_tid);

}  // namespace gpr
