// Whether gravity may move a thread from where it stands.
#pragma once

#include "monitor/paging/fragment.h"
#include "monitor/tracee/fault_origin.h"

namespace gpr {

// The thread, which waits for a page, runs code that may run on any node, and is not in a leaf
// function (memcpy) that code of the class `kept` called, which runs on this node only: it would be
// back at once.
bool in_neutral_code(Fragment& fragment, const FaultOrigin& origin, CodeClass kept);

}  // namespace gpr
