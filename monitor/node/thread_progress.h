// Whether a thread has got on with what it is about to do natively, such as a call that pages are
// held for: nobody tells its supervisor, and on a busy host it may not get a processor for long.
#pragma once

#include <sys/types.h>

#include <chrono>

#include "base/task.h"
#include "transport/loop.h"

namespace gpr {

struct Progress {
    std::chrono::nanoseconds on_processor;  // having run for so long, it has done it
    std::chrono::nanoseconds asleep{0};     // and having slept for so long
    // Where its instruction is, for which it may have to wait itself: standing there, it has not
    // begun. 0: it has.
    uint64_t begins_at = 0;
};

// Returns when the thread has got on so far from now, or has gone. tid: as this supervisor sees it.
Task<void> thread_gets_on(Loop& loop, pid_t tid, Progress enough);

}  // namespace gpr
