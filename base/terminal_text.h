// Text that others have chosen, for our user's terminal.
#pragma once

#include <string>

namespace gpr {

// Replaces control characters, and bytes that are no UTF-8, by question marks. Line ends are kept
// if wanted.
std::string without_controls(const std::string& text, bool keeps_lines = false);

}  // namespace gpr
