// Giving a descriptor of ours to a thread in its stub, by a message over a socket.
#pragma once

#include <cstdint>

#include "base/task.h"

namespace gpr {

class StubThread;

// A copy of `fd` becomes `number` in the thread's table, in place of what that refers to. Returns
// the number, or what the kernel says, as a negative error. The process needs room for three more
// descriptors for a moment.
Task<int64_t> pass_descriptor(StubThread& stub, int fd, int number, bool closes_on_exec);

}  // namespace gpr
