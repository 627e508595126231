// At a thread's end the kernel writes memory (clear_child_tid, robust locks). Those pages must stay
// on this node until it has.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>

#include "monitor/paging/pager.h"
#include "transport/loop.h"

namespace gpr {

// Returns the clear_child_tid address of a forked child's main thread and clears it on this node;
// 0: none.
Task<uint64_t> take_clear_tid(StubThread& main);

// Calls `then` once the thread has ended, or after several seconds. This polls, because a main
// thread's end is reported only when all other threads have ended. Ids as this supervisor sees
// them.
void after_end(Loop& loop, pid_t pid, pid_t tid, std::function<void()> then);
// Releases what paging::Supply::hold() has held.
void release_after_end(Loop& loop, Pager& pager, pid_t pid, pid_t tid, uint64_t hold);

}  // namespace gpr
