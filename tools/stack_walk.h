// The calls in which a thread was, from the registers and the piece of its stack that came with a
// traced call.
#pragma once

#include <vector>

#include "tools/process_symbols.h"
#include "tools/trace_story.h"

namespace gpr {

// The innermost first. It ends where more of the stack would be needed.
std::vector<CallFrame> walk_stack(const ProcessSymbols& symbols, const TracedThread& thread);

}  // namespace gpr
