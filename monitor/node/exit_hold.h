// What a kernel writes when a thread ends (its cleared tid, robust locks) must be here until it
// has.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>

#include "monitor/paging/pager.h"
#include "transport/loop.h"

namespace gpr {

// What the end of a main thread clears, of a child of fork(2), and no longer here: 0 is nothing.
Task<uint64_t> take_clear_tid(StubThread& main);

// Once the thread has ended, or will not soon: a main thread's end is reported when all others have
// ended, so it is looked for. Ids as this supervisor names them.
void after_end(Loop& loop, pid_t pid, pid_t tid, std::function<void()> then);
// Lets go of a hold of paging::Supply::hold.
void release_after_end(Loop& loop, Pager& pager, pid_t pid, pid_t tid, uint64_t hold);

}  // namespace gpr
