// What a kernel writes when a thread ends (its cleared tid, robust locks) must be here until it
// has.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "monitor/pager.h"
#include "transport/loop.h"

namespace gpr {

// Lets go of a hold of Pager::hold once the thread has ended, or will not soon: a main thread's end
// is reported when all others have ended, so it is looked for. Ids as this supervisor names them.
void release_after_end(Loop& loop, Pager& pager, pid_t pid, pid_t tid, uint64_t hold);

}  // namespace gpr
