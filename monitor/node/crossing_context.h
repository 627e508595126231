// The registers of a thread that crosses, in the frame that it crosses with.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "base/result.h"
#include "monitor/tracee/context_raw.h"
#include "monitor/tracee/stub_thread.h"
#include "transport/frame.h"

namespace gpr {

// Returns the frame's raw part, the extended state. before: the call that the thread was to make
// again when it went on here.
[[nodiscard]] std::vector<std::byte> put_context(wire::Crossing::Builder crossing,
                                                 const ThreadContext& context,
                                                 const SuspendedCall& before);
Result<ThreadContext> context_of(const ReceivedFrame& frame);

// Gives the kernel here the list of robust futexes that the thread had at the other node; 0:
// unchanged. tid: as this supervisor sees it.
Task<void> take_robust_list(StubThread& stub, pid_t tid, uint64_t head);

}  // namespace gpr
