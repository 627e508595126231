// The manual page of a command, from what its help text is made of.
#pragma once

#include <string>

#include "tools/commands.h"

namespace gpr {

// In the language of man(7).
std::string manual_page(const Command& command);

}  // namespace gpr
