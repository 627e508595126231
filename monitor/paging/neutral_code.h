// Whether gravity may move a thread away from where it is.
#pragma once

#include "monitor/paging/fragment.h"
#include "monitor/tracee/fault_origin.h"

namespace gpr {

// Whether the thread, which waits for a page, runs code that may run on any node, and was not
// called directly by code of class `kept`, which runs on this node only: a leaf function such as
// memcpy would soon return, and the thread would come back.
bool in_neutral_code(Fragment& fragment, const FaultOrigin& origin, CodeClass kept);

}  // namespace gpr
