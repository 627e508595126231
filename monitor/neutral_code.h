// Whether gravity may move a thread from where it stands.
#pragma once

#include "monitor/fault_origin.h"
#include "monitor/fragment.h"

namespace gpr {

// The thread, which waits for a page, runs code that may run on any node, and is not in a leaf
// function (memcpy) that code of the class `kept` called, which runs on this node only: it would be
// back at once.
bool in_neutral_code(Fragment& fragment, const FaultOrigin& origin, CodeClass kept);

}  // namespace gpr
